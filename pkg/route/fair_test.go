package route

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/gate"
)

// tenants is one replica with requests of tenant a at ten times the rate of tenant b; each alone is more than it takes.
func tenants(t *testing.T, a, b func(i int) string) *plant {
	cfg := Default()
	cfg.Classes[0].Deadline = 5 * time.Minute // nobody is refused
	r := newRouter(1, cfg)
	p := newPlant(t, r, 1)
	rng := rand.New(rand.NewPCG(1, 1))
	n := 0
	flow := func(name func(int) string) func() *Request {
		return func() *Request {
			n++
			return sized(500+rng.IntN(3000), "", name(n))
		}
	}
	p.stream(15*capacity(r, 2000, 20), at(20), flow(a))
	p.stream(1.5*capacity(r, 2000, 20), at(60), flow(b))
	return p
}

func always(name string) func(int) string { return func(int) string { return name } }

// Two tenants, one with ten times the requests, get the same tokens: over any stretch in which both wait they differ by
// one request of each at most, the bound of start-time fair queueing.
func TestTenantsShareInTokens(t *testing.T) {
	p := tenants(t, always("a"), always("b"))
	low, high, diff := 0.0, 0.0, 0.0
	most := map[string]float64{}
	backlogged := 0
	p.seen = func(d *Decision) {
		waiting := map[string]int{d.ticket.Flow: 1} // d itself did
		for h := range p.held {
			waiting[h.ticket.Flow]++
		}
		most[d.ticket.Flow] = max(most[d.ticket.Flow], d.ticket.Tokens)
		if waiting["a"] == 0 || waiting["b"] == 0 { // the stretch is over
			low, high, diff = 0, 0, 0
			return
		}
		backlogged++
		if diff += d.ticket.Tokens; d.ticket.Flow == "b" {
			diff -= 2 * d.ticket.Tokens
		}
		low, high = min(low, diff), max(high, diff)
		if high-low > most["a"]+most["b"] {
			t.Fatalf("at %v one tenant got %v tokens more, and the largest requests are of %v", p.now.Sub(epoch), high-low, most)
		}
	}
	p.run(at(60))
	if a, b := p.tokens["interactivea"], p.tokens["interactiveb"]; backlogged < 500 || b < 0.4*(a+b) {
		t.Errorf("%d requests in stretches in which both wait; a got %v tokens, b %v", backlogged, a, b)
	}
}

// llm-d-async PR#380: tenants count where their source is trusted. A client that names a thousand of them while no source is set
// (the edge then leaves Flow empty) gets what it would get without: first come, first served.
func TestTenantsWithoutSource(t *testing.T) {
	p := tenants(t, always(""), always(""))
	var last time.Time
	inOrder := true
	p.seen = func(d *Decision) {
		inOrder = inOrder && !d.ticket.Deadline.Before(last)
		last = d.ticket.Deadline
	}
	p.run(at(10))
	if len(p.held) < 100 || !inOrder {
		t.Errorf("%d held; in order of deadline: %v", len(p.held), inOrder)
	}
}

// gateway-api-inference-extension#1982: the gate stays closed for longer than anything could forget, one held request for each tenant and no arrival.
// Each is dispatched when it opens.
func TestNobodyIsForgotten(t *testing.T) {
	cfg := Default()
	cfg.Classes[1].SharePercent = 0
	r := newRouter(4, cfg)
	leases := fill(r, at(0))
	var held []*Decision
	for i := range 2000 {
		q := ask(i, 10)
		q.Flow = fmt.Sprint("tenant ", i)
		held = append(held, r.Route(at(0), bulkly(q)))
	}
	for s := range 299 {
		if n := r.Release(at(float64(s))); n != 0 {
			t.Fatalf("%d released after %d s", n, s)
		}
	}
	for _, l := range leases {
		l.Release(at(299), true)
	}
	n := 0
	for now := 299.0; now < 299.9; now += 0.05 {
		n += r.Release(at(now))
		for _, d := range held {
			if d.State == Picked {
				r.Done(at(now), d, Answered)
			}
		}
	}
	for i, d := range held {
		if d.Outcome != Answered {
			t.Fatalf("tenant %d: state %v, outcome %v", i, d.State, d.Outcome)
		}
	}
	if n != len(held) || r.gate.Len() != 0 {
		t.Errorf("%d released, %d still held", n, r.gate.Len())
	}
	idle(t, r, at(300))
}

// One giant that came first does not stand before the small ones of its class: its own size is part of its deadline. It
// is not starved either: it goes when as much time has passed.
func TestGiantDoesNotBlockSmallOnes(t *testing.T) {
	r := newRouter(1, Default())
	leases := fill(r, at(0))
	giant := r.Route(at(0), ask(0, 100_000)) // 2.8 s of prefill: 28 s more than the small ones have
	var small []*Decision
	for i := range 40 {
		small = append(small, r.Route(at(float64(i)), ask(1+i, 100)))
	}
	r.Release(at(20))
	leases[0].Release(at(20), true)
	for { // one at a time
		p := r.gate.Release(at(20))
		if p == nil {
			break
		}
		d := p.Owner.(*Decision)
		for i, s := range small {
			later := s.Arrived.Sub(giant.Arrived)
			if d == giant && s.State == Held && later < 27*time.Second {
				t.Errorf("the giant goes before small request %d, which came %v after it", i, later)
			}
			if s == d && later > 29*time.Second && giant.State == Held {
				t.Errorf("small request %d goes before the giant, which came %v before it", i, later)
			}
		}
	}
	if giant.State != Picked || giant.ticket.State() != gate.Admitted {
		t.Errorf("the giant is in state %v", giant.State)
	}
}
