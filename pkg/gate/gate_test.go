package gate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return epoch.Add(time.Duration(seconds * 1e9)) }

const (
	tau   = 2500 // tokens of backlog that are tau in a world, whose prompt token takes 200 us: 0.5 s
	share = 625  // a quarter of it
)

// world is a gate over a pool, and tickets that want what a test says.
type world struct {
	*Gate
	testing.TB
	pool *pool.Pool
}

// request is a ticket's owner.
type request struct {
	slot   int // the replica of least cost
	tokens float64
	need   float64 // share of KV
	lease  pool.Lease
}

func newPool(n, seats int) *pool.Pool {
	cfg := pool.Config{
		Profile: "8B", Step: 10 * time.Millisecond, PerPromptToken: 100 * time.Microsecond, Chunk: 100,
		MaxKVPercent: 100, KVTokens: 1 << 20, Seats: seats, OutputTokens: 10,
	}
	endpoints := make([]string, n)
	for i := range endpoints {
		endpoints[i] = fmt.Sprintf("10.0.0.%d:8000", i+1)
	}
	return pool.New("llm", endpoints, cfg)
}

// newWorld has classes interactive, standard and bulk, and replicas of four seats. Nobody has a share.
func newWorld(t testing.TB, replicas, most int) *world {
	return worldOf(t, newPool(replicas, 4), []Class{{Most: most, Bytes: 1000}, {Most: most, Bytes: 1000}, {Most: most, Bytes: 1000, Bulk: true}})
}

func worldOf(t testing.TB, p *pool.Pool, classes []Class) *world {
	w := &world{TB: t, pool: p}
	w.Gate = New(classes, true, w.pool,
		func(now time.Time, t *Ticket) (*pool.Replica, pool.View) {
			q := t.Owner.(*request)
			t.Need = q.need
			r := w.pool.Replicas[q.slot]
			return r, r.View(now)
		},
		func(now time.Time, t *Ticket) {
			q := t.Owner.(*request)
			w.pool.Charge(now, &q.lease, w.pool.Replicas[q.slot], pool.Load{Prompt: q.tokens, Uncached: q.tokens, Bulk: classes[t.Class].Bulk})
		})
	return w
}

const (
	interactive = iota
	standard
	bulk
)

func (w *world) ticket(class, slot int, deadline float64) *Ticket {
	return &Ticket{Class: class, Deadline: at(deadline), Tokens: 100, Owner: &request{slot: slot, tokens: 100}}
}

// holds fails unless so many tickets are held, all of the class.
func (w *world) holds(want, class int) {
	w.Helper()
	if n, _ := w.Held(class); n != want || w.Len() != want {
		w.Errorf("%d held, %d of class %d, want %d", w.Len(), n, class, want)
	}
}

// offer offers a new ticket and fails unless it comes to want.
func (w *world) offer(now float64, class, slot int, deadline float64, want State) *Ticket {
	w.Helper()
	return w.bring(now, w.ticket(class, slot, deadline), want)
}

func (w *world) bring(now float64, t *Ticket, want State) *Ticket {
	w.Helper()
	if got := w.Offer(at(now), t); got != want || t.State() != want {
		w.Fatalf("Offer of class %d for replica %d = %v, state %v, want %v", t.Class, t.Owner.(*request).slot, got, t.State(), want)
	}
	return t
}

// load puts tokens on a replica.
func (w *world) load(now float64, slot int, tokens float64) *pool.Lease {
	l := &pool.Lease{}
	w.pool.Charge(at(now), l, w.pool.Replicas[slot], pool.Load{Prompt: tokens, Uncached: tokens})
	return l
}

// release makes passes until nothing changes and fails unless exactly these tickets end in this order.
func (w *world) release(now float64, want ...*Ticket) {
	w.Helper()
	var got []*Ticket
	for t := w.Release(at(now)); t != nil; t = w.Release(at(now)) {
		got = append(got, t)
	}
	if !slices.Equal(got, want) {
		w.Fatalf("at %v s %d tickets ended: %v, want %v", now, len(got), got, want)
	}
}

func (w *world) next(want float64) {
	w.Helper()
	if got := w.Next(); (want == 0) != got.IsZero() || want != 0 && got.Sub(at(want)).Abs() > 2*time.Microsecond {
		w.Fatalf("Next = %v, want %v s", got.Sub(epoch), want)
	}
}

func states(w *world, want State, tickets ...*Ticket) {
	w.Helper()
	for i, t := range tickets {
		if t.State() != want {
			w.Errorf("ticket %d is in state %v, want %v", i, t.State(), want)
		}
	}
}

func TestOffer(t *testing.T) {
	for _, c := range []struct {
		name    string
		class   int
		backlog float64 // of the replica that it wants
		leases  int     // beside it
		want    State
	}{
		{"interactive, idle", interactive, 0, 0, Admitted},
		{"interactive, just below the knee", interactive, tau - 1, 0, Admitted},
		{"interactive, at the knee", interactive, tau + 1, 0, Held},
		{"interactive, no seat", interactive, 100, 3, Held},
		{"standard, just below the knee", standard, tau - 1, 0, Admitted},
		{"standard, at the knee", standard, tau + 1, 0, Held},
		{"bulk, idle", bulk, 0, 0, Admitted},
		{"bulk, under a quarter", bulk, share - 1, 0, Admitted},
		{"bulk, above a quarter", bulk, share + 1, 0, Held},
		{"bulk, no seat", bulk, 10, 3, Held},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 2, 10)
			if c.backlog > 0 {
				w.load(0, 1, c.backlog)
			}
			for range c.leases {
				w.load(0, 1, 1)
			}
			w.offer(0, c.class, 1, 10, c.want)
			w.holds(map[State]int{Admitted: 0, Held: 1}[c.want], c.class)
		})
	}
}

// Patient: a free replica is not a reason to leave the best one.
func TestHeldWaitsForItsReplica(t *testing.T) {
	w := newWorld(t, 2, 10)
	w.load(0, 0, tau+1000) // 0.7 s
	a := w.offer(0, interactive, 0, 10, Held)
	w.release(0)
	w.next(0.2)
	w.release(0.199)
	w.release(0.2005, a)
	states(w, Admitted, a)
	w.next(0)
}

func TestHeldBlocksNobodyWhoseReplicaIsFree(t *testing.T) {
	w := newWorld(t, 2, 10)
	w.load(0, 0, tau+1000)
	a := w.offer(0, interactive, 0, 10, Held)
	b := w.offer(0, interactive, 1, 10, Held) // somebody of its class is held: a pass decides
	w.release(0, b)
	states(w, Held, a)
	c := w.offer(0, standard, 1, 10, Held)
	d := w.offer(0, bulk, 1, 10, Held)
	w.release(0, c, d) // 200 tokens there: under a quarter of tau
	w.release(0.25, a)
}

// Somebody less urgent who is held is no reason to hold.
func TestMoreUrgentPassesTheHeldAtOnce(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.load(0, 0, share+10)
	b := w.offer(0, bulk, 0, 10, Held)
	w.offer(0, interactive, 0, 10, Admitted)
	w.offer(0, standard, 0, 10, Admitted)
	states(w, Held, b)
	if w.Len() != 1 {
		t.Errorf("%d held", w.Len())
	}
}

func TestOrderIsClassThenDeadlineThenArrival(t *testing.T) {
	w := newWorld(t, 1, 20)
	l := w.load(0, 0, tau+5000)
	late := w.offer(0, interactive, 0, 9, Held)
	b1 := w.offer(0, bulk, 0, 2, Held)
	s := w.offer(0, standard, 0, 3, Held)
	soon := w.offer(0, interactive, 0, 8, Held)
	b2 := w.offer(0, bulk, 0, 1.5, Held)
	same := w.offer(0, interactive, 0, 8, Held)
	w.release(0)
	l.Release(at(1), true)
	w.release(1, soon, same, late, s) // four seats
	for i, want := range []*Ticket{b2, b1} {
		soon := []*Ticket{soon, same}[i]
		soon.Owner.(*request).lease.Release(at(1.1), true)
		w.release(1.1, want)
	}
	states(w, Admitted, late, b1, s, soon, b2, same)
	if w.Len() != 0 {
		t.Errorf("%d held", w.Len())
	}
}
