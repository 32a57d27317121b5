package gate

import (
	"fmt"
	"testing"
)

// 32 tickets of a flow and 64 of a class are looked at; who stands behind them waits, whatever replica it wants.
func TestLookAhead(t *testing.T) {
	w := worldOf(t, newPool(2, 100), []Class{{Most: 200}, {Most: 200}, {Most: 200, Bulk: true}})
	w.load(0, 0, tau+50_000)
	stuck := func(flow string) *Ticket {
		f := w.ticket(interactive, 0, 5)
		f.Flow = flow
		return w.bring(0, f, Held)
	}
	free := func(flow string) *Ticket {
		f := w.ticket(interactive, 1, 6)
		f.Flow, f.Tokens = flow, 0
		return w.bring(0, f, Held)
	}
	for range 31 {
		stuck("a")
	}
	w.release(0, free("a")) // the 32nd
	first := stuck("a")
	behind := free("a")
	w.release(0)            // the 33rd of its flow
	w.release(0, free("b")) // another flow's
	for range 31 {
		stuck("b")
	}
	w.release(0, free("b")) // the 64th of the class
	stuck("b")
	last := free("c")
	w.release(0) // the 65th
	w.release(0, w.offer(0, bulk, 1, 6, Held))
	states(w, Held, behind, last)
	// A ticket in front leaves: those behind it come into sight.
	if !w.Leave(at(0), first) {
		t.Fatal("a held ticket could not leave")
	}
	w.release(0, behind, last)
}

// A deadline is an event wherever its ticket stands.
func TestExpiryOutOfSight(t *testing.T) {
	w := newWorld(t, 1, 500)
	w.load(0, 0, 1e6)
	for i := range 300 {
		f := w.ticket(interactive, 0, 9)
		f.Flow = fmt.Sprint(i % 3)
		w.bring(0, f, Held)
	}
	f := w.ticket(interactive, 0, 2)
	f.Flow = "z"
	w.bring(0, f, Held)
	w.release(0)
	w.next(2)
	w.release(2, f)
	states(w, Expired, f)
}

// Each class has bounds of its own, in tickets and in bytes: a crowd of bulk refuses nobody else.
func TestFull(t *testing.T) {
	w := newWorld(t, 1, 2)
	w.load(0, 0, tau+1000)
	bring := func(class int, bytes int64, want State) *Ticket {
		t := w.ticket(class, 0, 10)
		t.Bytes = bytes
		return w.bring(0, t, want)
	}
	bring(bulk, 0, Held)
	bring(bulk, 1000, Held)
	bring(bulk, 0, Refused)
	bring(interactive, 1001, Refused)
	a := bring(interactive, 600, Held)
	bring(interactive, 401, Refused)
	bring(interactive, 400, Held)
	bring(interactive, 0, Refused)
	if n, bytes := w.Held(interactive); n != 2 || bytes != 1000 || w.Len() != 4 {
		t.Errorf("%d held, %d bytes, %d in all", n, bytes, w.Len())
	}
	w.Leave(at(0), a)
	if n, bytes := w.Held(interactive); n != 1 || bytes != 400 || w.Len() != 3 {
		t.Errorf("%d held, %d bytes, %d in all", n, bytes, w.Len())
	}
	bring(interactive, 600, Held)
	for _, none := range []Class{{Bytes: 1000}, {Most: 10}} {
		w = worldOf(t, newPool(1, 4), []Class{none})
		w.load(0, 0, tau-1)
		bring(0, 1, Admitted)
		bring(0, 1, Refused) // now above the knee
	}
}
