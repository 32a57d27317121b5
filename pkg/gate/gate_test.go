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
	t    *testing.T
	pool *pool.Pool
}

// request is a ticket's owner.
type request struct {
	slot   int // the replica of least cost
	tokens float64
	lease  pool.Lease
}

func newPool(n, seats int) *pool.Pool {
	cfg := pool.Config{
		Profile: "8B", Step: 10 * time.Millisecond, PerPromptToken: 100 * time.Microsecond, Chunk: 100,
		KVTokens: 1 << 20, Seats: seats, OutputTokens: 10,
	}
	endpoints := make([]string, n)
	for i := range endpoints {
		endpoints[i] = fmt.Sprintf("10.0.0.%d:8000", i+1)
	}
	return pool.New("llm", endpoints, cfg)
}

// newWorld has classes interactive, standard and bulk, and replicas of four seats.
func newWorld(t *testing.T, replicas, most int) *world {
	w := &world{t: t, pool: newPool(replicas, 4)}
	w.Gate = New([]bool{false, false, true}, most, replicas,
		func(now time.Time, t *Ticket) (*pool.Replica, pool.View) {
			r := w.pool.Replicas[t.Owner.(*request).slot]
			return r, r.View(now)
		},
		func(now time.Time, t *Ticket) {
			q := t.Owner.(*request)
			w.pool.Charge(now, &q.lease, w.pool.Replicas[q.slot], pool.Load{Prompt: q.tokens, Uncached: q.tokens})
		})
	return w
}

const (
	interactive = iota
	standard
	bulk
)

func (w *world) ticket(class, slot int, deadline float64) *Ticket {
	return &Ticket{Class: class, Deadline: at(deadline), Owner: &request{slot: slot, tokens: 100}}
}

// offer offers a new ticket and fails unless it comes to want.
func (w *world) offer(now float64, class, slot int, deadline float64, want State) *Ticket {
	w.t.Helper()
	t := w.ticket(class, slot, deadline)
	if got := w.Offer(at(now), t); got != want || t.State() != want {
		w.t.Fatalf("Offer of class %d for replica %d = %v, state %v, want %v", class, slot, got, t.State(), want)
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
	w.t.Helper()
	var got []*Ticket
	for t := w.Release(at(now)); t != nil; t = w.Release(at(now)) {
		got = append(got, t)
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("at %v s %d tickets ended: %v, want %v", now, len(got), got, want)
	}
}

func (w *world) next(want float64) {
	w.t.Helper()
	if got := w.Next(); (want == 0) != got.IsZero() || want != 0 && got.Sub(at(want)).Abs() > 2*time.Microsecond {
		w.t.Fatalf("Next = %v, want %v s", got.Sub(epoch), want)
	}
}

func states(w *world, want State, tickets ...*Ticket) {
	w.t.Helper()
	for i, t := range tickets {
		if t.State() != want {
			w.t.Errorf("ticket %d is in state %v, want %v", i, t.State(), want)
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
			if held := w.Len(); held != map[State]int{Admitted: 0, Held: 1}[c.want] || held != w.Held(c.class) {
				t.Errorf("%d held", held)
			}
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

func TestBulkGivesWayToAnInteractiveThatWaits(t *testing.T) {
	w := newWorld(t, 2, 10)
	l := w.load(0, 0, 10)
	for range 3 { // no seat is left, though there is no backlog to speak of
		w.load(0, 0, 1)
	}
	a := w.offer(0, interactive, 0, 10, Held)
	b := w.offer(0, bulk, 0, 10, Held)
	c := w.offer(0, bulk, 1, 10, Held) // nobody waits for the other replica
	w.release(0, c)
	l.Release(at(1), true)
	w.release(1, a) // and the seat is taken again
	states(w, Held, b)
	a.Owner.(*request).lease.Release(at(2), true)
	w.release(2, b)
}

func TestBulkWaitsForAQuarterOfTau(t *testing.T) {
	w := newWorld(t, 1, 10)
	w.load(0, 0, 2*share)
	b := w.offer(0, bulk, 0, 10, Held)
	w.release(0)
	w.next(0.125)
	w.release(0.124)
	w.release(0.1255, b)
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

func TestLookAhead(t *testing.T) {
	w := newWorld(t, 2, 100)
	w.load(0, 0, tau+50_000)
	for range LookAhead - 1 {
		w.offer(0, interactive, 0, 5, Held)
	}
	last := w.offer(0, interactive, 1, 6, Held)
	w.release(0, last) // the 32nd is looked at
	w.offer(0, interactive, 0, 5, Held)
	behind := w.offer(0, interactive, 1, 6, Held)
	w.release(0) // the 33rd is not
	b := w.offer(0, bulk, 1, 6, Held)
	w.release(0, b) // another class is
	states(w, Held, behind)
	// A ticket in front leaves: the one behind it comes into sight.
	if !w.Leave(w.queues[interactive][3]) {
		t.Fatal("a held ticket could not leave")
	}
	w.release(0, behind)
}

// Each class has its own bound: a crowd of bulk refuses nobody else.
func TestFull(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.load(0, 0, tau+1000)
	w.offer(0, bulk, 0, 10, Held)
	w.offer(0, bulk, 0, 10, Refused)
	a := w.offer(0, interactive, 0, 10, Held)
	w.offer(0, interactive, 0, 10, Refused)
	if w.Len() != 2 || w.Held(interactive) != 1 || w.Held(bulk) != 1 {
		t.Errorf("%d held", w.Len())
	}
	w.Leave(a)
	w.offer(0, interactive, 0, 10, Held)
}
