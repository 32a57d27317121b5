package envoy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/route"
)

// patience bounds every wait for something that happens in milliseconds on a machine that is not busy.
const patience = 15 * time.Second

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// pool returns the state of weir's pool, of a process as /debug/pool shows it; an error while that does not listen.
func (r *rig) pool() (s route.Stats, err error) {
	if r.edge != nil {
		return r.router.Stats(time.Now()), nil
	}
	req, err := http.NewRequest("GET", r.admin+"/debug/pool", nil)
	if err != nil {
		return s, err
	}
	got, err := try(http.DefaultClient, req)
	if err != nil {
		return s, err
	}
	var page []route.Stats
	if err := json.Unmarshal([]byte(got.body), &page); err != nil || len(page) != 1 {
		return s, fmt.Errorf("/debug/pool: %v in %s", err, got.body)
	}
	return page[0], nil
}

// awaitPool waits until the pool is as is says.
func (r *rig) awaitPool(t *testing.T, what string, is func(s route.Stats) bool) {
	t.Helper()
	eventually(t, what, func() bool {
		s, err := r.pool()
		return err == nil && is(s)
	})
}

func (r *rig) awaitHeld(t *testing.T, n int) {
	t.Helper()
	r.awaitPool(t, strconv.Itoa(n)+" are held", func(s route.Stats) bool { return heldOf(s) == n })
}

func leasesOf(s route.Stats) (n int) {
	for _, at := range s.Replicas {
		n += at.Leases
	}
	return n
}

func heldOf(s route.Stats) (n int) {
	for _, held := range s.Held {
		n += held
	}
	return n
}

func (e *edge) leases() int { return leasesOf(e.router.Stats(time.Now())) }
func (e *edge) held() int   { return heldOf(e.router.Stats(time.Now())) }

// settle waits until weir holds nothing, and forgets what ended and what the backends saw.
func (r *rig) settle(t *testing.T) {
	t.Helper()
	r.drained(t)
	r.edge.take()
	r.takeSeen()
}

// drained waits until weir holds nothing, and forgets nothing.
func (r *rig) drained(t *testing.T) {
	t.Helper()
	eventually(t, "weir holds nothing", func() bool { return r.Server.Stats().Streams == 0 && r.leases() == 0 })
}

// drainedEnds returns the requests that ended, when weir holds nothing any more.
func (r *rig) drainedEnds(t *testing.T) []ended {
	t.Helper()
	r.drained(t)
	return r.edge.take()
}

// oneEnded returns the one request that ended, when it has.
func (r *rig) oneEnded(t *testing.T) ended {
	t.Helper()
	var all []ended
	eventually(t, "the request has ended", func() bool {
		all = append(all, r.edge.take()...)
		return len(all) > 0
	})
	if len(all) != 1 {
		t.Fatalf("%d requests ended, want 1", len(all))
	}
	return all[0]
}

// stat is a counter or gauge of Envoy's.
func (r *rig) stat(t *testing.T, name string) float64 {
	t.Helper()
	all, err := r.Stats(name)
	v, found := all[name]
	if err != nil || !found {
		t.Fatalf("no %s: %v", name, err)
	}
	return v
}

// accessLog returns the lines of Envoy's access log that have a text, when there are n.
func (r *rig) accessLog(t *testing.T, text string, n int) (lines []string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the access log has %d lines of %q", n, text), func() bool {
		log, err := os.ReadFile(filepath.Join(r.Dir, "access.log"))
		if err != nil {
			t.Fatal(err)
		}
		lines = nil
		for line := range strings.Lines(string(log)) {
			if strings.HasSuffix(line, "\n") && strings.Contains(line, text) {
				lines = append(lines, line)
			}
		}
		return len(lines) >= n
	})
	return lines
}
