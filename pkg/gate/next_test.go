package gate

import (
	"testing"

	"github.com/weirproxy/weir/pkg/pool"
)

func TestExpiryComesAtItsTime(t *testing.T) {
	w := newWorld(t, 1, 10)
	w.load(0, 0, tau+1e6) // does not drain in time
	b := w.offer(0, bulk, 0, 2, Held)
	a := w.offer(0, interactive, 0, 3, Held)
	c := w.offer(0, interactive, 0, 1, Held)
	w.next(0.000_000_001) // at once: what was offered was not looked at
	w.release(0)
	w.next(1)
	w.release(0.999_999)
	w.release(1, c)
	w.next(2)
	w.release(2.5, b)
	w.next(3)
	w.release(3, a)
	w.next(0)
	states(w, Expired, a, b, c)
	if w.Len() != 0 {
		t.Errorf("%d held", w.Len())
	}
}

// Late is late, even if the replica is free by now.
func TestExpiredIsNotAdmitted(t *testing.T) {
	w := newWorld(t, 1, 10)
	l := w.load(0, 0, tau+1000)
	a := w.offer(0, interactive, 0, 1, Held)
	w.release(0)
	l.Release(at(2), true)
	w.release(2, a)
	states(w, Expired, a)
}

// A replica that shows no progress is no reason to come back before the deadline.
func TestNextOfAHungReplica(t *testing.T) {
	w := newWorld(t, 1, 10)
	w.load(0, 0, 50_000)
	a := w.offer(4, interactive, 0, 10, Held)
	w.release(4)
	w.next(10)
	w.pool.Replicas[0].Observe(at(4.5), pool.Sample{At: at(4.5), Tokens: 5, HasTokens: true})
	w.release(4.5)
	w.next(10) // 35,000 tokens take seven seconds, of which three are believed
	w.release(10, a)
	states(w, Expired, a)
}

func TestNextAsksForATickAtLeast(t *testing.T) {
	w := newWorld(t, 1, 10)
	w.load(0, 0, tau) // exactly at the knee: no time at all to it
	w.offer(0, interactive, 0, 10, Held)
	w.release(0)
	w.next(0.001)
}

func TestLeave(t *testing.T) {
	w := newWorld(t, 1, 20)
	w.load(0, 0, tau+1000)
	var all []*Ticket
	for i := range 10 { // with equal deadlines, so that only arrival tells them apart
		all = append(all, w.offer(0, interactive, 0, 5+float64(i%2), Held))
	}
	for _, i := range []int{4, 0, 9, 5} {
		if !w.Leave(at(0), all[i]) || w.Leave(at(0), all[i]) || all[i].State() != Left {
			t.Errorf("ticket %d: state %v after leaving twice", i, all[i].State())
		}
	}
	w.holds(6, interactive)
	w.release(0.25, all[2], all[6], all[8]) // three seats beside the load's
	states(w, Left, all[4], all[0], all[9], all[5])
	for _, t := range []*Ticket{all[2], w.offer(0.3, interactive, 0, 5, Held)} {
		if w.Leave(at(0.3), t) != (t.State() == Left) {
			w.Errorf("Leave of a ticket in state %v", t.State())
		}
	}
	if w.Leave(at(0.3), w.ticket(interactive, 0, 1)) {
		t.Error("a ticket that was never offered has left")
	}
}

// A full KV gauge that nobody reads again goes stale by time alone, and the request that it held is let go then.
func TestNextOfAGaugeThatGoesStale(t *testing.T) {
	w := newWorld(t, 1, 10)
	w.pool.Replicas[0].Observe(at(0), pool.Sample{At: at(0), KV: 1, HasKV: true})
	a := w.offer(0, interactive, 0, 30, Held)
	w.release(0)
	w.next(3)
	w.release(2.999)
	w.release(3, a)
	states(w, Admitted, a)
}

// The same with a backlog that drains later than that: the later of the two counts.
func TestNextOfAGaugeAndABacklog(t *testing.T) {
	w := newWorld(t, 1, 10)
	r := w.pool.Replicas[0]
	w.load(0, 0, tau+20_000) // four seconds to the knee
	r.Observe(at(0), pool.Sample{At: at(0), KV: 1, HasKV: true, Tokens: 1, HasTokens: true})
	a := w.offer(2, interactive, 0, 30, Held)
	r.Observe(at(2), pool.Sample{At: at(2), KV: 1, HasKV: true, Tokens: 2, HasTokens: true})
	w.release(2)
	w.next(5)
	w.release(5, a)
	states(w, Admitted, a)
}
