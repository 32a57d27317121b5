package envoy_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/route"
)

// TestDeadReplicas closes one replica of four under load, and then a second: nobody listens there any more. Envoy's
// retry takes weir's second choice, and weir picks the dead ones no more. weir reads no metrics here: the answers alone
// tell.
func TestDeadReplicas(t *testing.T) {
	path := find(t, envoy.Newest)
	eachMode(t, path, rigOptions{edits: longTimeouts}, func(t *testing.T, r *rig) {
		r.serve(t, 0)
		r.circuit(t)
		var dead []string
		for _, most := range []float64{0.01, 0.02} { // of the requests may fail
			load := r.load(t, "")
			load.await(t, 100)
			r.backends[len(dead)].CloseClientConnections()
			r.backends[len(dead)].Close()
			dead = append(dead, r.addrs[len(dead)])
			closed := time.Now()
			load.await(t, 400)
			load.stop()
			r.drained(t)
			all := load.take()
			sent, failed := len(all), failures(all)
			var picks, onDead, retried int
			for _, e := range r.take() {
				if e.Served == route.Second {
					retried++
				}
				if e.Arrived.Before(closed) || e.State != route.Picked {
					continue
				}
				if picks++; slices.Contains(dead, e.Choice.First.Endpoint) {
					onDead++
				}
			}
			t.Logf("%d of 4 dead: %d requests, %d fail, %d retried, %d of %d picks on a dead one", len(dead), sent, failed, retried, onDead, picks)
			if float64(failed) > most*float64(sent) {
				t.Errorf("%d of 4 dead: %d of %d requests fail", len(dead), failed, sent)
			}
			if picks < 300 || float64(onDead) > 0.05*float64(picks) {
				t.Errorf("%d of 4 dead: %d of %d picks are on a dead one", len(dead), onDead, picks)
			}
			if retried == 0 {
				t.Error("no request was retried: the replica died unnoticed")
			}
		}
		if n, over := r.stat(t, "cluster.replicas.upstream_rq_retry"), r.stat(t, "cluster.replicas.upstream_rq_retry_overflow"); n == 0 || over != 0 {
			t.Errorf("%v retries, %v more refused", n, over)
		}
	})
}

// circuit holds that Envoy has the bootstrap's breakers: its own default allows three retries at once.
func (r *rig) circuit(t *testing.T) {
	t.Helper()
	page, err := r.Get("/clusters")
	if err != nil {
		t.Fatal(err)
	}
	if want := "replicas::default_priority::max_retries::1280"; !strings.Contains(string(page), want) {
		t.Errorf("no %s in /clusters", want)
	}
}

// load is small requests, four at a time.
type load struct {
	stop func() // and wait for those under way

	mu  sync.Mutex
	all []reply // a failure has status 0
}

// load sends requests until stop.
func (r *rig) load(t *testing.T, query string) *load {
	t.Helper()
	l, done := &load{}, make(chan struct{})
	client := &http.Client{Timeout: patience}
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				case <-time.After(5 * time.Millisecond):
				}
				body := fmt.Sprintf(`{"model": "m", "prompt": "request %d of worker %d"}`, i, worker)
				got, _ := try(client, newRequest(t, "POST", r.front+"/v1/completions?"+query, body))
				l.mu.Lock()
				l.all = append(l.all, got)
				l.mu.Unlock()
			}
		})
	}
	l.stop = sync.OnceFunc(func() {
		close(done)
		workers.Wait()
	})
	t.Cleanup(l.stop)
	return l
}

// await waits until n more requests have ended, however slow the machine is.
func (l *load) await(t *testing.T, n int) {
	t.Helper()
	for n += l.count(); l.count() < n; {
		was := l.count()
		eventually(t, "a request has ended", func() bool { return l.count() > was })
	}
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// take returns what ended since the last call.
func (l *load) take() []reply {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

// failures counts the replies that are not 200.
func failures(all []reply) (n int) {
	for _, r := range all {
		if r.status != http.StatusOK {
			n++
		}
	}
	return n
}
