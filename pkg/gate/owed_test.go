package gate

import (
	"math"
	"testing"
)

// owedWorld has one replica, so busy that bulk does not go by its own rule, though everybody else does. Bulk has a
// tenth.
func owedWorld(t *testing.T) *world {
	w := worldOf(t, newPool(1, 1000), []Class{{Most: 100}, {Most: 100}, {Most: 100, Bulk: true, Share: 0.1}})
	w.load(0, 0, share+100)
	return w
}

// of is a ticket that costs its class tokens and the replica next to nothing.
func (w *world) of(class int, tokens float64) *Ticket {
	t := w.ticket(class, 0, 100)
	t.Tokens, t.Owner = tokens, &request{tokens: 0.01}
	return t
}

func (w *world) owes(want float64) {
	w.Helper()
	if got := w.live[bulk].owed; math.Abs(got-want) > 1e-6 {
		w.Fatalf("bulk is owed %v tokens, want %v", got, want)
	}
}

func TestShare(t *testing.T) {
	w := owedWorld(t)
	w.bring(0, w.of(interactive, 1e6), Admitted)
	w.owes(0) // nobody of bulk was held
	first := w.bring(0, w.of(bulk, 1000), Held)
	second := w.bring(0, w.of(bulk, 1000), Held)
	w.release(0)
	if !w.Next().After(at(0)) {
		t.Fatal("a pass is due, and nothing changed")
	}
	w.bring(0, w.of(interactive, 500), Admitted)
	w.owes(50)
	w.next(1e-9) // the bulk that is held may go now
	a := w.bring(0, w.of(interactive, 10), Held)
	w.release(0, first, a)
	w.owes(50 - 900 + 1)
	w.bring(0, w.of(interactive, 8490), Admitted)
	w.owes(0)
	w.release(0) // all square
	w.bring(0, w.of(standard, 10), Admitted)
	w.owes(1)
	if got := w.Release(at(0)); got != second {
		t.Errorf("%+v goes before bulk that is owed", got)
	}
}

// What is owed has bounds: long bad luck is not made good at once, and plenty is soon forgiven.
func TestOwedIsBounded(t *testing.T) {
	w := owedWorld(t)
	var all []*Ticket
	for range 12 {
		all = append(all, w.bring(0, w.of(bulk, 8192), Held))
	}
	w.bring(0, w.of(interactive, 1e9), Admitted)
	w.owes(65536)
	w.release(0, all[:9]...) // nine times nine tenths of 8,192
	for _, b := range all[9:] {
		w.Leave(at(0), b)
	}
	w.owes(65536 - 9*0.9*8192)
	w.bring(0, w.of(interactive, 1e9), Admitted)
	w.owes(0) // made good though nobody of bulk is held, and no more than that

	w = worldOf(t, newPool(1, 1000), []Class{{Most: 10}, {Most: 10}, {Most: 10, Bulk: true, Share: 0.1}})
	w.bring(0, w.of(bulk, 10_000), Admitted) // by its own rule
	w.owes(-9000)
	w.bring(0, w.of(bulk, 1e9), Admitted)
	w.owes(-65536)
	w.load(0, 0, share+100)
	b := w.bring(0, w.of(bulk, 1e6), Held)
	w.bring(0, w.of(interactive, 655_360+10), Admitted)
	w.release(0, b)
	w.owes(1 - 9e5) // what it got for what it was owed counts whole
}

// A class of which nobody is held any more is owed nothing, whether its last one left or was late.
func TestNobodyHeldIsOwedNothing(t *testing.T) {
	w := owedWorld(t)
	b := w.bring(0, w.of(bulk, 1000), Held)
	w.bring(0, w.of(interactive, 500), Admitted)
	w.Leave(at(0), b)
	w.owes(0)
	b = w.of(bulk, 1000)
	b.Deadline = at(0.01)
	w.bring(0, b, Held)
	w.bring(0, w.of(interactive, 500), Admitted)
	w.release(0.01, b)
	states(w, Expired, b)
	w.owes(0)
}

func TestShareZeroIsOwedNothing(t *testing.T) {
	w := worldOf(t, newPool(1, 1000), []Class{{Most: 100}, {Most: 100}, {Most: 100, Bulk: true}})
	w.load(0, 0, share+100)
	b := w.bring(0, w.of(bulk, 1000), Held)
	w.bring(0, w.of(interactive, 1e9), Admitted)
	w.release(0)
	w.owes(0)
	states(w, Held, b)
}
