package envoy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/route"
)

// weirProc is the command weir as a process.
type weirProc struct {
	*os.Process
	ended chan struct{} // closed when it has, with code its exit status, -1 after a signal
	code  int
	kill  func() // by SIGKILL
}

// startWeir runs the command weir with the file that Envoy reads.
func (r *rig) startWeir(t *testing.T, path string) *weirProc {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(path, "serve", "--bootstrap", filepath.Join(r.Dir, "envoy.yaml"))
	cmd.Dir, cmd.Stderr = r.Dir, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // when the thread that starts it ends
	started, w := make(chan error), &weirProc{ended: make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(w.ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
			w.code = cmd.ProcessState.ExitCode()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	w.Process = cmd.Process
	w.kill = sync.OnceFunc(func() {
		w.Process.Kill()
		<-w.ended
		if t.Failed() {
			t.Logf("log of weir:\n%s", &log)
		}
	})
	t.Cleanup(w.kill)
	return w
}

// pools returns what weir's /debug/pool shows; an error while it does not listen.
func (r *rig) pools() (s route.Stats, err error) {
	resp, err := http.Get(r.admin + "/debug/pool")
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return s, err
	}
	var page []route.Stats
	if err := json.Unmarshal(text, &page); err != nil || len(page) != 1 {
		return s, fmt.Errorf("/debug/pool: %v in %s", err, text)
	}
	return page[0], nil
}

// awaitPool waits until a pool of the weir process is as is says.
func (r *rig) awaitPool(t *testing.T, what string, is func(s route.Stats) bool) {
	t.Helper()
	eventually(t, what, func() bool {
		s, err := r.pools()
		return err == nil && is(s)
	})
}

func leasesOf(s route.Stats) (n int) {
	for _, at := range s.Replicas {
		n += at.Leases
	}
	return n
}

// picked reports whether a request went past weir: its pick is on it.
func (r *rig) picked(t *testing.T) bool {
	t.Helper()
	req := newRequest(t, "POST", r.front+"/v1/chat/completions", chat)
	req.Header.Set(pickHeader, r.addrs[0])
	if _, err := try(http.DefaultClient, req); err != nil {
		t.Fatal(err)
	}
	for _, b := range r.backends {
		for _, s := range b.take() {
			return len(s.picks) > 0
		}
	}
	return false
}

// resume is how soon after weir listens again picks must be back.
const resume = 2 * time.Second

// killed kills the command weir, with every seat taken and requests held: in BUFFERED held and new requests go on
// through the fallback and answers under way are not cut; in FULL_DUPLEX_STREAMED the held ones fail with 503. A client
// names no host meanwhile (agentgateway PR#3144). Back again, weir picks within two seconds.
func killed(t *testing.T, r *rig, weir string) {
	kill := r.startWeir(t, weir).kill
	eventually(t, "a pick", func() bool { return r.picked(t) })
	r.awaitPool(t, "weir is idle", func(s route.Stats) bool { return leasesOf(s) == 0 })
	answer := r.stream(t, t.Context(), "events=100000&every=20ms")
	r.occupyRest(t)
	var held []<-chan reply
	for range 5 {
		held = append(held, r.send(t, t.Context(), pickHeader, r.addrs[0]))
	}
	r.awaitPool(t, "5 held", func(s route.Stats) bool { return s.Held["interactive"] == 5 })
	kill()
	want := map[bool]int{true: 200, false: 503}[r.buffered]
	for range held {
		if got := <-held[0]; got.status != want {
			t.Errorf("a held request ends with %d after %v, want %d", got.status, got.took, want)
		}
		held = held[1:]
	}
	r.goesOnWithout(t)
	if r.buffered {
		if _, err := answer.Body.Read(make([]byte, 64<<10)); err != nil {
			t.Errorf("an answer under way: %v", err)
		}
	}
	r.startWeir(t, weir)
	r.awaitPool(t, "weir listens", func(route.Stats) bool { return true })
	began := time.Now()
	for !r.picked(t) && time.Since(began) < patience {
		time.Sleep(10 * time.Millisecond)
	}
	if took := time.Since(began); took > resume {
		t.Errorf("picks are back %v after weir, want %v", took, resume)
	} else {
		t.Logf("picks are back %v after weir", took)
	}
}

// occupyRest takes the seats of all replicas but one.
func (r *rig) occupyRest(t *testing.T) {
	t.Helper()
	for range r.addrs[1:] {
		r.stream(t, t.Context(), "events=100000&every=20ms")
	}
	r.awaitPool(t, "every seat is taken", func(s route.Stats) bool { return leasesOf(s) == len(r.addrs) })
}

// goesOnWithout wants requests to be answered, without a pick and on more than one replica, while weir is gone: in
// BUFFERED at once, in FULL_DUPLEX_STREAMED from the failure of the health checks on.
func (r *rig) goesOnWithout(t *testing.T) {
	t.Helper()
	if r.buffered { // at once
		r.without(t, 10)
	}
	r.awaitFailed(t)
	r.without(t, 40)
}

func (r *rig) awaitFailed(t *testing.T) {
	t.Helper()
	eventually(t, "weir's health checks have failed", func() bool {
		page, err := r.Get("/clusters")
		return err == nil && bytes.Contains(page, []byte("health_flags::/failed_active_hc"))
	})
}

// without sends n requests of clients that name a host.
func (r *rig) without(t *testing.T, n int) {
	t.Helper()
	for _, b := range r.backends {
		b.take()
	}
	for range n {
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", chat)
		req.Header.Set(pickHeader, r.addrs[0])
		if got := exchange(t, http.DefaultClient, req); got.status != 200 {
			t.Errorf("a request without weir: status %d", got.status)
		}
	}
	served := 0
	for _, b := range r.backends {
		all := b.take()
		if len(all) > 0 {
			served++
		}
		for _, s := range all {
			if len(s.picks) > 0 {
				t.Errorf("a client's pick %v arrives", s.picks)
			}
		}
	}
	if n >= 40 && served < 2 {
		t.Errorf("the fallback uses %d replicas", served)
	}
}
