package envoy_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// bulkPolicy is that of the weirs which killBulk starts.
func (r *rig) bulkPolicy(t *testing.T) {
	t.Helper()
	r.policy(t, "seats: 1}", "kv_tokens: 20000}")
	r.policy(t, "affinity: consistent_hash(prompt_prefix) ", "affinity: none ") // so that load alone spreads
}

// killBulk kills weir while it holds 100 of bulk beside interactive traffic. Of a second after that all are waited for.
func (r *rig) killBulk(t *testing.T, weir string) (k killing) {
	t.Helper()
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
	load := r.load(t, busyInteractive)
	time.Sleep(time.Second)
	k.before = load.take()
	w.kill()
	if r.mode == envoy.Streamed {
		r.awaitFailed(t)
		load.stop()
		all := load.take()
		t.Logf("until Envoy's health check has failed, %d of %d interactive requests fail", failures(all), len(all))
		load = r.load(t, busyInteractive)
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
	r.bulkPolicy(t)
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
		if n := failures(all); n > 0 || len(all) < 20 {
			t.Errorf("%s: %d of %d interactive requests fail", when, n, len(all))
		}
	}
	return k
}

// worth is how many times the interactive p99 after a kill with the route of bulk open must be that with it closed. It
// is some 100 on a quiet machine.
const worth = 5

// killedWithBulkOpen is the control: where the route of bulk fails open all of it reaches the replicas, and interactive
// requests wait behind it. before is the rig where it is closed, and closed what came of that, which a pause of the
// machine may have spoilt: then both are killed once more.
func killedWithBulkOpen(t *testing.T, r *rig, weir string, before *rig, closed killing) {
	r.bulkPolicy(t)
	for range tries {
		open := r.killBulk(t, weir)
		if open.arrived != 100 || slices.ContainsFunc(open.bulk, func(a asked) bool { return a.status() != 200 }) {
			t.Errorf("%d of bulk reach a replica", open.arrived)
		}
		p, q := p99(closed.after), p99(open.after)
		if t.Logf("interactive p99 after the kill: %v, with bulk open %v, %.0f times", p, q, q.Seconds()/p.Seconds()); q >= worth*p {
			return
		}
		closed = before.killBulk(t, weir)
	}
	t.Errorf("in %d tries interactive p99 after the kill is not %d times as long with bulk open", tries, worth)
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
	r.begin(t, t.Context(), "/v1/completions?"+endless, string(append(body, `"}`...)))
}

func p99(all []reply) time.Duration {
	slices.SortFunc(all, func(a, b reply) int { return int(a.took - b.took) })
	return all[len(all)*99/100].took
}
