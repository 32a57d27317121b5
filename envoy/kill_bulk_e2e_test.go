package envoy_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
)

// What a request takes of a replica that serves one at a time: 25 of bulk on each take a second.
const (
	busyBulk        = "busy=40ms"
	busyInteractive = "busy=2ms"
)

// killing is what became of interactive requests, and of 100 of bulk that weir held, before and after it was killed.
type killing struct {
	before, after []reply
	bulk          []asked
	arrived       int // of these, at a replica
}

// killBulk kills weir while it holds 100 of bulk beside interactive traffic. Of a second after that all are waited for.
func (r *rig) killBulk(t *testing.T, weir string) (k killing) {
	t.Helper()
	r.policy(t, "seats: 1}", "kv_tokens: 20000}")
	r.policy(t, "affinity: consistent_hash(prompt_prefix) ", "affinity: none ") // so that load alone spreads
	w := r.startWeir(t, weir)
	r.awaitIdle(t)
	for i := range r.addrs { // three quarters of a replica's KV: bulk goes below 0.7 only
		r.occupyKV(t, i)
	}
	r.awaitPool(t, "a long answer on each", func(s route.Stats) bool {
		return !slices.ContainsFunc(s.Replicas, func(at pool.Stats) bool { return at.KV < 0.7 || at.Leases != 1 })
	})
	ends, bodies := r.crowd(t, 100, "bulk", busyBulk)
	r.awaitHeld(t, 100)
	load := r.measure(t)
	time.Sleep(time.Second)
	k.before = load.take()
	w.kill()
	if !r.buffered {
		r.awaitFailed(t)
		time.Sleep(200 * time.Millisecond) // those under way then
		all := load.take()
		bad := 0
		for _, one := range all {
			if failed(one) {
				bad++
			}
		}
		t.Logf("until Envoy's health check has failed, %d of %d interactive requests fail", bad, len(all))
	}
	time.Sleep(time.Second)
	load.stop()
	k.after = load.take()
	for range 100 {
		k.bulk = append(k.bulk, <-ends)
	}
	k.arrived = r.arrived(bodies)
	p, q := p99(k.before), p99(k.after)
	t.Logf("interactive p99 %v before and %v after, %.2f times; %d and %d requests; of bulk %d reach a replica", p, q, q.Seconds()/p.Seconds(), len(k.before), len(k.after), k.arrived)
	return k
}

// killedWhileBulkHeld has bulk fail closed: none of it reaches a replica. In BUFFERED every interactive request goes on,
// also those under way; in FULL_DUPLEX_STREAMED they fail until Envoy's health check has.
func killedWhileBulkHeld(t *testing.T, r *rig, weir string) killing {
	k := r.killBulk(t, weir)
	for _, a := range k.bulk {
		if a.status() != 503 {
			t.Fatalf("bulk: status %d, %v, %s", a.status(), a.err, a.text)
		}
	}
	again, more := r.crowd(t, 5, "bulk", "")
	for range 5 {
		if a := <-again; a.status() != 503 {
			t.Errorf("bulk without weir: status %d, %v", a.status(), a.err)
		}
	}
	if n := k.arrived + r.arrived(more); n != 0 {
		t.Errorf("%d of bulk reach a replica", n)
	}
	for when, all := range map[string][]reply{"before": k.before, "after": k.after} {
		if slices.ContainsFunc(all, failed) || len(all) < 20 {
			t.Errorf("%s: some of %d interactive requests fail", when, len(all))
		}
	}
	return k
}

// worth is how many times the interactive p99 after a kill with the route of bulk open must be that with it closed. It
// is some 100 on a quiet machine.
const worth = 5

// killedWithBulkOpen is the control: where the route of bulk fails open all of it reaches the replicas, and interactive
// requests wait behind it.
func killedWithBulkOpen(t *testing.T, r *rig, weir string, closed killing) {
	open := r.killBulk(t, weir)
	if open.arrived != 100 || slices.ContainsFunc(open.bulk, func(a asked) bool { return a.status() != 200 }) {
		t.Errorf("%d of bulk reach a replica", open.arrived)
	}
	p, q := p99(closed.after), p99(open.after)
	t.Logf("interactive p99 after the kill: %v, with bulk open %v, %.0f times", p, q, q.Seconds()/p.Seconds())
	if q < worth*p {
		t.Errorf("interactive p99 after the kill is %v, with bulk open %v: want %d times", p, q, worth)
	}
}

// policy changes the file that weir reads when it starts next, which Envoy has read.
func (r *rig) policy(t *testing.T, old, new string) {
	t.Helper()
	file := filepath.Join(r.Dir, "envoy.yaml")
	text, err := os.ReadFile(file)
	if err == nil {
		text, err = envoy.Replace(text, old, new)
	}
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// occupyKV sends a prompt of some 14,500 tokens that nobody shares, with an endless answer.
func (r *rig) occupyKV(t *testing.T, i int) {
	t.Helper()
	body := []byte(`{"model": "m", "max_tokens": 16, "prompt": "` + strconv.Itoa(i))
	for len(body) < 58_000 {
		body = append(body, " words"...)
	}
	resp, err := http.DefaultClient.Do(newRequest(t, "POST", r.front+"/v1/completions?events=100000&every=100ms", string(append(body, `"}`...))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
}

// measured is interactive traffic.
type measured struct {
	stop func()

	mu  sync.Mutex
	all []reply
}

// measure sends small requests, four at a time, until stop.
func (r *rig) measure(t *testing.T) *measured {
	t.Helper()
	m, done := &measured{}, make(chan struct{})
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(5 * time.Millisecond):
				}
				got, _ := try(http.DefaultClient, newRequest(t, "POST", r.front+"/v1/chat/completions?"+busyInteractive, chat)) // a failure has status 0
				m.mu.Lock()
				m.all = append(m.all, got)
				m.mu.Unlock()
			}
		})
	}
	m.stop = sync.OnceFunc(func() {
		close(done)
		workers.Wait()
	})
	t.Cleanup(m.stop)
	return m
}

// take returns what was answered since the last call.
func (m *measured) take() []reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.all
	m.all = nil
	return all
}

func failed(r reply) bool { return r.status != http.StatusOK }

func p99(all []reply) time.Duration {
	slices.SortFunc(all, func(a, b reply) int { return int(a.took - b.took) })
	return all[len(all)*99/100].took
}
