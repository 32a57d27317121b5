package gate

import (
	"testing"

	"github.com/weirproxy/weir/pkg/pool"
)

// past is interactive load of so many tokens that came now and is gone: only its rate is left.
func (w *world) past(now, tokens float64) { w.load(now, 0, tokens).Release(at(now), true) }

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

func TestBulkKV(t *testing.T) {
	for _, c := range []struct {
		name     string
		kv, need float64
		want     State
	}{
		{"nothing in use", 0, 0.1, Admitted},
		{"fits", 0.5, 0.19, Admitted},
		{"does not fit", 0.5, 0.21, Held},
		{"nothing fits any more", 0.71, 0, Held},
		{"a giant, and nothing in use", 0, 0.9, Admitted},
		{"a giant beside a little", 0.01, 0.9, Held},
	} {
		w := newWorld(t, 1, 10)
		w.pool.Replicas[0].Observe(at(0), pool.Sample{At: at(0), KV: c.kv, HasKV: true})
		b := w.ticket(bulk, 0, 10)
		b.Owner.(*request).need = c.need
		if got := w.Offer(at(0), b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		a := w.ticket(standard, 0, 10) // another kind is bound by the knee alone
		a.Owner.(*request).need = c.need
		w.bring(0, a, Admitted)
	}
}

// With k of 2 two replicas hold unprefilled bulk, and those may have more of it; a third goes when one is through.
func TestBulkOnKReplicas(t *testing.T) {
	w := newWorld(t, 4, 10)
	w.past(0, 3000) // a load of 0.061, for two replicas
	w.offer(0, bulk, 0, 10, Admitted)
	b := w.ticket(bulk, 1, 10)
	b.Owner.(*request).tokens = 400
	w.bring(0, b, Admitted)
	third := w.offer(0, bulk, 2, 10, Held)
	again := w.offer(0, bulk, 1, 10, Held)
	w.offer(0, standard, 2, 10, Admitted)
	w.release(0, again)
	w.next(0.02) // the 100 tokens of the first
	w.release(0.0199)
	w.release(0.0201, third)
}

// Where no replica shows progress, k alone grows: as the interactive load is forgotten.
func TestBulkGoesWhenKGrows(t *testing.T) {
	w := newWorld(t, 4, 10)
	w.past(0, 3000)
	for slot := range 2 {
		b := w.ticket(bulk, slot, 10)
		b.Owner.(*request).tokens = 50_000 // ten seconds, of which three are believed
		w.bring(0, b, Admitted)
	}
	third := w.offer(0, bulk, 2, 10, Held)
	w.release(0)
	w.next(8.347614) // 10*ln(0.061/0.0265): one replica is enough then
	w.release(8.347)
	w.release(8.348, third)
}

// k says nothing to bulk that something is owed to.
func TestOwedBulkGoesAnywhere(t *testing.T) {
	w := worldOf(t, newPool(4, 9), []Class{{Most: 10}, {Most: 10, Bulk: true, Share: 0.1}})
	w.past(0, 3000)
	w.offer(0, 1, 0, 10, Admitted)
	w.offer(0, 1, 1, 10, Admitted)
	third := w.offer(0, 1, 2, 10, Held)
	w.release(0)
	if third.Owed() {
		t.Error("nothing is owed, and the ticket says so")
	}
	w.live[1].owed = 1
	w.release(0, third)
	if !third.Owed() || !third.Bulk() {
		t.Error("what is owed to its class does not show where it is picked")
	}
}

// Bulk on all replicas, while no interactive request comes: more of it waits for a quarter of tau alone.
func TestBulkOnAllReplicas(t *testing.T) {
	w := newWorld(t, 2, 10)
	for slot := range 2 {
		b := w.ticket(bulk, slot, 10)
		b.Owner.(*request).tokens = share + 100*float64(1+slot)
		w.bring(0, b, Admitted)
	}
	third := w.offer(0, bulk, 0, 10, Held)
	w.release(0)
	w.next(0.02)
	w.release(0.0199)
	w.release(0.0201, third)
}

// A replica that fails takes nobody, however idle, so a full pool beside it is full: its classes' rates are learned, and who
// would be late is refused at once.
func TestTheDeadAreNotOpen(t *testing.T) {
	w := newWorld(t, 2, 10)
	w.past(0, 3000)
	w.load(0, 1, 9000)
	dead := w.pool.Replicas[0]
	dead.Refuse(at(0))
	if w.open(at(0)) || w.openForBulk(at(0)) {
		t.Error("the idle replica is down, the other full, and a pass would look at each ticket")
	}
	w.pool.Replicas[1].Refuse(at(0))
	if !w.open(at(0)) {
		t.Error("with all down the rule is void")
	}
}
