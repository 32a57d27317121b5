package policy

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
)

// page is a scrape of a replica of 100 blocks.
func page(waiting, running, used int) step.Stats {
	return step.Stats{Waiting: waiting, Running: running, KVUsed: used, KVBlocks: 100}
}

// classed is a call of a class.
func classed(class string, text int) *Call {
	c := call(text, 640)
	c.Req.Class = class
	return c
}

// TestSaturation: the mean over replicas of the scarcer of queue and KV, a replica that was never scraped counts as full, and
// with the correction a request that no page shows counts as waiting.
func TestSaturation(t *testing.T) {
	for _, c := range []struct {
		pages            []step.Stats
		sent             int // to the first replica
		plain, corrected float64
	}{
		{[]step.Stats{{}, {}}, 0, 1, 1},
		{[]step.Stats{page(0, 0, 0), {}}, 0, 0.5, 0.5},
		{[]step.Stats{page(5, 9, 0), page(0, 9, 80)}, 0, 1, 1},
		{[]step.Stats{page(5, 9, 40), page(0, 9, 0)}, 0, 0.5, 0.5}, // not the sum of queue and KV
		{[]step.Stats{page(10, 0, 0), page(0, 0, 20)}, 0, 1.125, 1.125},
		{[]step.Stats{page(0, 0, 0), page(0, 0, 0)}, 3, 0, 0.3},
		{[]step.Stats{page(1, 1, 0), page(0, 0, 0)}, 3, 0.1, 0.2}, // one of three no page shows
		{[]step.Stats{page(9, 9, 0), page(0, 0, 0)}, 3, 0.9, 0.9}, // others' requests are no credit
	} {
		r := mustNew(t, "weir/gate=static-shed", env(t, 2)).(*shedding)
		for slot, p := range c.pages {
			if p.KVBlocks > 0 {
				r.Observe(0, slot, p)
			}
		}
		for range c.sent {
			r.pool.Charge(epoch, new(pool.Lease), r.pool.Replicas[0], pool.Load{Prompt: 1, Uncached: 1})
		}
		if got := r.load.plain(); math.Abs(got-c.plain) > 1e-9 {
			t.Errorf("%+v: %v, want %v", c.pages, got, c.plain)
		}
		if got := r.load.corrected(); math.Abs(got-c.corrected) > 1e-9 {
			t.Errorf("%+v, %d sent: corrected %v, want %v", c.pages, c.sent, got, c.corrected)
		}
	}
}

// TestShedding: bulk is refused as often as the rule says, and nobody else ever.
func TestShedding(t *testing.T) {
	for _, c := range []struct {
		gate    string
		waiting int // on both replicas: a saturation of a fifth of it
		odds    float64
	}{
		{"static-shed", 4, 0}, {"static-shed", 5, 1},
		{"probabilistic", 0, 0}, {"probabilistic", 1, 300 * math.Pow(0.2, 5)}, {"probabilistic", 2, 1},
	} {
		r := mustNew(t, "weir/gate="+c.gate, env(t, 2))
		refused := 0
		for n := range 2000 {
			for slot := range 2 {
				r.Observe(0, slot, page(c.waiting, 0, 0))
			}
			front, back := classed("interactive", n), classed("bulk", n)
			if r.Arrive(0, front); front.State != Sent {
				t.Fatalf("%s, %d waiting: interactive in state %v", c.gate, c.waiting, front.State)
			}
			r.End(0, front)
			switch r.Arrive(0, back); back.State {
			case Sent:
				r.End(0, back)
			case Refused:
				refused++
				if back.Outcome != route.Shed {
					t.Fatalf("%s: outcome %v", c.gate, back.Outcome)
				}
			default:
				t.Fatalf("%s: state %v", c.gate, back.State)
			}
		}
		if got := float64(refused) / 2000; math.Abs(got-c.odds) > 0.03 {
			t.Errorf("%s, %d waiting: %v of bulk refused, want %v", c.gate, c.waiting, got, c.odds)
		}
	}
}

// TestHolding: nobody goes while the pool is saturated, also by what no page shows yet; then interactive before bulk, each by
// arrival; and who waits past the class's deadline is late.
func TestHolding(t *testing.T) {
	r := mustNew(t, "weir/gate=static-hold", env(t, 1))
	var calls []*Call
	for n, class := range []string{"bulk", "interactive", "bulk", "interactive", "interactive", "interactive", "interactive"} {
		c := classed(class, n)
		if due := r.Arrive(time.Duration(n)*time.Second, c); !due || c.State != Held {
			t.Fatalf("state %v, due %v", c.State, due)
		}
		calls = append(calls, c)
	}
	if done := r.Release(6*time.Second, nil); len(done) != 0 {
		t.Errorf("%d go before the first page", len(done))
	}
	if next, ok := r.Next(); !ok || next != 31*time.Second {
		t.Errorf("next at %v, %v; want the deadline of the first interactive one", next, ok)
	}
	r.Observe(7*time.Second, 0, page(0, 0, 0)) // five fit
	order := r.Release(7*time.Second, nil)
	if want := slices.Concat(calls[1:2], calls[3:]); !slices.Equal(order, want) {
		t.Fatalf("%d go, want the five interactive ones by arrival", len(order))
	}
	for _, c := range order {
		if c.State != Sent {
			t.Errorf("state %v", c.State)
		}
	}
	if due := r.End(8*time.Second, order[0]); !due {
		t.Error("an end makes room")
	}
	if done := r.Release(8*time.Second, nil); len(done) != 1 || done[0] != calls[0] || calls[0].State != Sent {
		t.Errorf("%d go after the end of one, want the first of bulk", len(done))
	}
	if next, ok := r.Next(); !ok || next != 302*time.Second {
		t.Errorf("next at %v, %v; want the deadline of the last one", next, ok)
	}
	if done := r.Release(302*time.Second, nil); len(done) != 1 || done[0] != calls[2] || calls[2].State != Refused || calls[2].Outcome != route.Late {
		t.Errorf("%d late, state %v", len(done), calls[2].State)
	}
	if _, ok := r.Next(); ok {
		t.Error("there is a next look though nobody is held")
	}
}
