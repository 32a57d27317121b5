package gate

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// Classes come and go at random while tickets do: none is lost, none is counted twice, a class keeps its tickets, and what
// is no class any more ends.
func TestConfigureLosesNobody(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 5))
		w := worldOf(t, newPool(2, 3), make([]Class, 9)) // classes only for the charge
		var names []string
		configure := func(now float64) {
			names = names[:0]
			var all []Class
			for _, i := range rng.Perm(6)[:1+rng.IntN(5)] {
				names = append(names, fmt.Sprint("class ", i))
				all = append(all, Class{Name: names[len(names)-1], Bulk: i > 3, Most: 50, Bytes: 1e6, Deadline: time.Minute})
			}
			w.Configure(at(now), all, rng.IntN(4) > 0)
		}
		configure(0)
		in := map[*Ticket]string{} // the held, by class
		var leases []*pool.Lease
		passes := func(now float64) {
			for t := w.Release(at(now)); t != nil; t = w.Release(at(now)) {
				if _, ok := in[t]; !ok {
					w.Fatalf("seed %d: a ticket ended in state %d that is not held", seed, t.State())
				}
				delete(in, t)
				if t.State() == Admitted {
					leases = append(leases, &t.Owner.(*request).lease)
				}
			}
		}
		now := 0.0
		for range 3000 {
			now += rng.ExpFloat64() * 0.02
			switch k := rng.IntN(100); {
			case k < 3:
				configure(now)
			case k < 60:
				a := w.ticket(rng.IntN(len(names)), rng.IntN(2), now+rng.Float64()*3)
				switch w.Offer(at(now), a) {
				case Held:
					in[a] = names[a.Class]
				case Admitted:
					leases = append(leases, &a.Owner.(*request).lease)
				}
			case k < 90 && len(leases) > 0:
				leases[0].Release(at(now), true)
				leases = leases[1:]
			}
			passes(now)
			count := map[string]int{}
			for _, name := range in {
				count[name]++
			}
			held := 0
			for _, s := range w.Stats(at(now), 0, nil) {
				if held += s.Held; s.Held != count[s.Class] {
					t.Fatalf("seed %d: %d held of %s, want %d", seed, s.Held, s.Class, count[s.Class])
				}
			}
			if held != len(in) || w.Len() != len(in) {
				t.Fatalf("seed %d: %d held by class, %d in all, want %d", seed, held, w.Len(), len(in))
			}
		}
		for len(in) > 0 { // by deadlines alone
			n := w.Next()
			if n.IsZero() {
				t.Fatalf("seed %d: %d held and nothing to come for", seed, len(in))
			}
			now = max(now, n.Sub(epoch).Seconds()) + 1e-6
			passes(now)
		}
	}
}

// What a ticket waits for is told, each reason when it is the one.
func TestWhy(t *testing.T) {
	for _, c := range []struct {
		want  Why
		class int
		need  float64
		set   func(w *world)
	}{
		{Seat, interactive, 0, func(w *world) {
			for range 4 {
				w.load(0, 0, 1)
			}
		}},
		{KV, interactive, 0, func(w *world) { w.pool.Replicas[0].Observe(at(0), pool.Sample{At: at(0), KV: 1, HasKV: true}) }},
		{Backlog, interactive, 0, func(w *world) { w.load(0, 0, tau+100) }},
		{BulkBacklog, bulk, 0, func(w *world) { w.load(0, 0, share+100) }},
		{BulkKV, bulk, 0.5, func(w *world) { w.pool.Replicas[0].Observe(at(0), pool.Sample{At: at(0), KV: 0.3, HasKV: true}) }},
		{BulkReplicas, bulk, 0, func(w *world) {
			w.past(0, 3000)
			w.offer(0, bulk, 1, 10, Admitted)
		}},
		{Behind, interactive, 0, func(w *world) {
			w.load(0, 0, tau+100)
			w.offer(0, interactive, 0, 9, Held)
		}},
	} {
		w := newWorld(t, 2, 10)
		c.set(w)
		a := w.ticket(c.class, 0, 10)
		a.Owner = &request{slot: 0, tokens: 100, need: c.need}
		w.bring(0, a, Held)
		if a.Why != c.want {
			t.Errorf("it waits for %q, want %q", a.Why, c.want)
		}
		if c.want == Behind {
			continue
		}
		w.Stats(at(0), 1, func(_ int, got *Ticket, r *pool.Replica, why Why) {
			if got != a || r != w.pool.Replicas[0] || why != c.want {
				t.Errorf("the head waits for %q on %s, want %q", why, r.Endpoint, c.want)
			}
		})
	}
}
