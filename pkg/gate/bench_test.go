package gate

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// crowd is a gate that holds n tickets of so many flows for a replica that hangs: nobody comes or goes but by the test.
func crowd(t testing.TB, n, flows int) (w *world, held []*Ticket) {
	w = worldOf(t, newPool(2, 1<<30), []Class{{Most: 20_000, Bytes: 1 << 40}, {}})
	w.load(0, 0, 1e9)
	for i := range n {
		held = append(held, w.one(i, flows))
		w.Offer(at(0), held[i])
	}
	for w.Release(at(0)) != nil {
	}
	return w, held
}

// one is the i-th ticket: for the hung replica, late after all the test.
func (w *world) one(i, flows int) *Ticket {
	t := w.ticket(0, 0, float64(1e6+i*7919%10_007))
	t.Flow = fmt.Sprint("tenant-", i%flows)
	return t
}

// BenchmarkHeld is one ticket that comes and leaves again beside so many held, and one that goes past them: a pass
// that looks at 64 of them.
func BenchmarkHeld(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		for _, flows := range []int{1, 500} {
			w, _ := crowd(b, n, flows)
			t := w.one(n/2, flows)
			b.Run(fmt.Sprintf("OfferLeave/%d/flows=%d", n, flows), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if t.state = Offered; w.Offer(at(0), t) != Held || !w.Leave(at(0), t) {
						b.Fatal("not held")
					}
				}
			})
			b.Run(fmt.Sprintf("Release/%d/flows=%d", n, flows), func(b *testing.B) {
				q := t.Owner.(*request)
				q.slot, q.tokens = 1, 0.001
				t.Flow, t.Tokens, t.Deadline = "", 0, at(1) // the first of all
				b.ReportAllocs()
				for b.Loop() {
					if t.state = Offered; w.Offer(at(0), t) != Held || w.Release(at(0)) != t || w.Release(at(0)) != nil {
						b.Fatal("not released")
					}
					q.lease.Release(at(0), true)
				}
			})
		}
	}
}

// The cost of a ticket does not grow with the tickets held: O(log n), with a wide margin for a busy machine.
func TestCostGrowsWithTheLogarithm(t *testing.T) {
	cost := func(n int) (least time.Duration) {
		w, _ := crowd(t, n, 500)
		a := w.one(n/2, 500)
		for range 20 {
			began := time.Now()
			for range 500 {
				a.state = Offered
				w.Offer(at(0), a)
				w.Leave(at(0), a)
			}
			if d := time.Since(began); least == 0 || d < least {
				least = d
			}
		}
		return least
	}
	if small, large := cost(100), cost(10_000); large > 20*small {
		t.Errorf("500 tickets that come and leave take %v beside 10,000 held and %v beside 100", large, small)
	}
}

// What a held ticket takes, the ticket itself included, in one flow and in as many as there may be.
func TestMemoryOfTenThousandHeld(t *testing.T) {
	for _, flows := range []int{1, 20_000} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		w, held := crowd(t, 10_000, flows)
		runtime.GC()
		runtime.ReadMemStats(&after)
		each := float64(after.HeapAlloc-before.HeapAlloc) / 10_000
		t.Logf("%d flows: %.0f bytes a ticket", flows, each)
		if each > 1024 {
			t.Errorf("%d flows: %.0f bytes a ticket", flows, each)
		}
		for _, a := range held {
			w.Leave(at(0), a)
		}
		if n := len(w.live[0].flows); n != 0 {
			t.Errorf("%d flows are left", n)
		}
	}
}
