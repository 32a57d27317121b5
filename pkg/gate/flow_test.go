package gate

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// order releases all tickets, each as the replica's one seat comes free, and returns their flows.
func (w *world) order(now float64, free func(float64)) (flows string) {
	free(now)
	for t := w.Release(at(now)); t != nil; t = w.Release(at(now)) {
		flows += t.Flow
		t.Owner.(*request).lease.Release(at(now), true)
	}
	return flows
}

// flowWorld has one class, and one replica with one seat, which is taken until free.
func flowWorld(t testing.TB) (w *world, free func(now float64)) {
	w = worldOf(t, newPool(1, 1), []Class{{Most: 20_000}})
	l := w.load(0, 0, 1)
	return w, func(now float64) { l.Release(at(now), true) }
}

func (w *world) flow(name string, tokens float64) *Ticket {
	t := w.ticket(0, 0, 100)
	t.Flow, t.Tokens, t.Owner = name, tokens, &request{tokens: 0.001}
	return w.bring(0, t, Held)
}

func TestFlowsShareInTokens(t *testing.T) {
	type came struct {
		flow   string
		tokens float64
	}
	for _, c := range []struct {
		name string
		came []came
		want string
	}{
		{"one flow is first come", []came{{"a", 1}, {"a", 100}, {"a", 1}}, "aaa"},
		{"by turns", []came{{"a", 10}, {"a", 10}, {"a", 10}, {"b", 10}, {"b", 10}, {"b", 10}}, "ababab"},
		{"a giant is paid for afterwards", []came{{"a", 35}, {"a", 10}, {"b", 10}, {"b", 10}, {"b", 10}, {"b", 10}, {"b", 10}}, "abbbbab"},
	} {
		w, free := flowWorld(t)
		for _, a := range c.came {
			w.flow(a.flow, a.tokens)
		}
		if got := w.order(0, free); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Whoever leaves or is late has cost his flow nothing.
func TestLeavingCostsNothing(t *testing.T) {
	w, free := flowWorld(t)
	gone := w.flow("a", 1000)
	w.flow("b", 10)
	w.flow("a", 10)
	w.flow("b", 10)
	w.Leave(at(0), gone)
	if got := w.order(0, free); got != "abb" {
		t.Errorf("order %s", got)
	}
}

// A flow that comes anew has no credit for the time before, and none from one that waited long for its own replica: the
// virtual time does not go back.
func TestNewFlowHasNoCredit(t *testing.T) {
	w := worldOf(t, newPool(2, 1), []Class{{Most: 1000}})
	hot, other := w.load(0, 0, 1), w.load(0, 1, 1)
	bring := func(flow string, slot int) *Ticket {
		f := w.ticket(0, slot, 100)
		f.Flow, f.Owner = flow, &request{slot: slot, tokens: 0.001}
		return w.bring(0, f, Held)
	}
	next := func(now float64, want string) *request {
		t.Helper()
		f := w.Release(at(now))
		if f == nil || f.Flow != want {
			t.Fatalf("at %v s %+v goes, want one of flow %s", now, f, want)
		}
		return f.Owner.(*request)
	}
	stuck := bring("a", 0)
	for range 10 {
		bring("b", 1)
	}
	other.Release(at(0), true)
	for range 5 { // b gets 500 tokens while a waits for its replica
		q := next(0, "b")
		q.lease.Release(at(0), true)
	}
	hot.Release(at(1), true)
	next(1, "a")
	states(w, Admitted, stuck)
	bring("c", 1)
	next(1, "c").lease.Release(at(1), true) // c and b take turns from here
	bring("c", 1)
	next(1, "b").lease.Release(at(1), true)
	next(1, "c").lease.Release(at(1), true)
	next(1, "b")
}

// llm-d-async PR#380: of a thousand times as many flows as are told apart the rest share one, and nobody is lost.
func TestManyFlows(t *testing.T) {
	w, free := flowWorld(t)
	const n = 12_000
	for i := range n {
		w.flow(fmt.Sprintf("%05d ", i), 10)
	}
	if got := len(w.live[0].flows); got != maxFlows+1 {
		t.Errorf("%d flows", got)
	}
	w.flow("00000 ", 10)
	w.flow("00000 ", 10)
	order := w.order(0, free)
	if len(order) != 6*(n+2) || order[:12] != "00000 00001 " || order[6*maxFlows:6*maxFlows+12] != "10000 00000 " {
		t.Errorf("%d tickets, first %q", len(order)/6, order[:min(20, len(order))])
	}
	if q := w.live[0]; len(q.flows) != 0 || q.order.Len() != 0 || q.idle.Len() != 0 || w.Len() != 0 {
		t.Errorf("%d flows are left", len(q.flows))
	}
}

// The bound of start-time fair queueing: over any stretch in which two flows are held, what they got differs by one
// ticket of each at most. One flow has ten times the requests.
func TestFairness(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		w, free := flowWorld(t)
		most := map[string]float64{}
		for i := range 2200 {
			name := "a"
			if i%11 == 0 {
				name = "b"
			}
			tokens := 1 + rng.ExpFloat64()*[]float64{100, 1000}[rng.IntN(2)]
			most[name] = max(most[name], tokens)
			w.flow(name, tokens)
		}
		free(0)
		low, high, diff, left := 0.0, 0.0, 0.0, 200
		for left > 0 {
			f := w.Release(at(0))
			f.Owner.(*request).lease.Release(at(0), true)
			if f.Flow == "a" {
				diff += f.Tokens
			} else {
				diff -= f.Tokens
				left--
			}
			low, high = min(low, diff), max(high, diff)
		}
		if high-low > most["a"]+most["b"] {
			t.Errorf("seed %d: one flow got %v tokens more, and the largest tickets are of %v", seed, high-low, most)
		}
	}
}
