package pick

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/pool"
)

// slowPlace is the known wait for a seat and for KV on a replica, by the expected life of those who hold them.
func slowPlace(p *pool.Pool, r *pool.Replica, now time.Time) (seat, room float64) {
	s, v := r.Stats(now), r.View(now)
	if s.Leases == 0 {
		return 0, 0
	}
	life := (s.PendingTokens - s.BacklogTokens) / float64(s.Leases) * v.Step // of one lease
	if lacking := s.Leases + 1 - p.Config.Seats; lacking > 0 {
		seat = float64(lacking) * life / float64(s.Leases)
	}
	if v.Used >= 1 {
		own := v.Used / float64(s.Leases) // what the end of one gives back
		room = (1 + (v.Used-1)/own) * life / float64(s.Leases)
	}
	return seat, room
}

// slowQueueing is the wait of M/M/c for as many servers as requests of that share fit, by Sakasegawa.
func slowQueueing(rho, share, service float64) float64 {
	rho, c := math.Min(rho, 0.98), math.Max(1/share, 1)
	return service * math.Pow(rho, math.Sqrt(2*c+2)) / rho / (c - c*rho)
}

// slowCosts is the formula of DESIGN.md, section 4, as it is written there.
func slowCosts(p *pool.Pool, q *Query, now time.Time) []float64 {
	costs := make([]float64, len(p.Replicas))
	waits := 0.0
	for _, r := range p.Replicas {
		v := r.View(now)
		waits += v.Backlog * v.Prefill
	}
	known := 0 // blocks that any replica holds
	for _, r := range p.Replicas {
		known = max(known, r.Index.Match(q.Chain))
	}
	m := 1.0
	if p.Work() > 0 {
		m = 1 + math.Min(waits/float64(len(p.Replicas))/p.Work(), 20)
	}
	places, shares, mean := make([]float64, len(costs)), make([]float64, len(costs)), 0.0
	for i, r := range p.Replicas {
		v := r.View(now)
		u := math.Max(q.Prompt-64*float64(r.Index.Match(q.Chain)), 1)
		if i == q.Home {
			u -= math.Max(q.Prompt-64*float64(known), 0) * q.Discount
		}
		shares[i] = (u + q.Output) / float64(p.Config.KVTokens/64*64)
		seat, room := slowPlace(p, r, now)
		if v.KV > 0 {
			room += slowQueueing(v.KV, shares[i], q.Output*v.Step)
		}
		places[i] = math.Max(seat, room)
		mean += room / float64(len(costs))
		costs[i] = v.Backlog*v.Prefill + u*v.Prefill*m
	}
	scarce := 0.0
	if p.KVTime() > 0 {
		scarce = math.Min(mean/p.KVTime(), 20)
	}
	for i, r := range p.Replicas {
		costs[i] += places[i] + shares[i]*q.Output*r.View(now).Step*scarce
	}
	return costs
}

// near is how far a cost may be from want: waits of less than a millionth are left out.
func near(want float64) float64 { return 1e-7 + 1e-6*want }

func TestBestAgreesWithTheFormula(t *testing.T) {
	differ := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 4))
		n := 1 + rng.IntN(12)
		p := newPool(n)
		chains := make([]chain.Chain, 5)
		for i := range chains {
			chains[i] = promptChain(seed*10+uint64(i), 1+rng.IntN(100))
		}
		for range rng.IntN(40) {
			now := at(rng.Float64())
			slot := rng.IntN(n)
			charge(p, now, slot, 1+float64(rng.IntN(20_000)))
			p.Replicas[slot].Index.Pin(chains[rng.IntN(5)][:1], rng.IntN(2000))
			warm(p, rng.IntN(n), chains[rng.IntN(5)])
			if rng.IntN(3) == 0 {
				p.Replicas[slot].Observe(now, pool.Sample{At: now, KV: rng.Float64(), HasKV: true})
			}
		}
		now := at(1 + rng.Float64())
		c := chains[rng.IntN(5)]
		q := query(p, c[:rng.IntN(len(c)+1)])
		q.Prompt += float64(rng.IntN(60))
		q.Output, q.Discount = float64(rng.IntN(1000)), float64(rng.IntN(6))/5
		got, costs := Best(now, p, q), slowCosts(p, q, now)
		if want := slices.Min(costs); math.Abs(got.Cost-want) > near(want) || math.Abs(costs[got.First.Slot]-want) > near(want) {
			t.Fatalf("seed %d: cost %v on %d, want %v of %v", seed, got.Cost, got.First.Slot, want, costs)
		}
		u := max(q.Prompt-float64(64*got.First.Index.Match(q.Chain)), 1)
		if want := (pool.Load{Prompt: q.Prompt, Uncached: u, Output: q.Output}); got.Load != want {
			t.Fatalf("seed %d: load %+v, want %+v: the discount must not reach it", seed, got.Load, want)
		}
		alone := got.View
		alone.Behind, alone.Seat, alone.Room = 0, 0, 0
		if alone != got.First.View(now) || got.Matched != got.First.Index.Match(q.Chain) {
			t.Fatalf("seed %d: view %+v, matched %d", seed, got.View, got.Matched)
		}
		if n == 1 {
			if got.Second != nil {
				t.Fatalf("seed %d: a second choice in a pool of one", seed)
			}
			continue
		}
		others := slices.Delete(slices.Clone(costs), got.First.Slot, got.First.Slot+1)
		if want := slices.Min(others); got.Second == got.First || math.Abs(costs[got.Second.Slot]-want) > near(want) {
			t.Fatalf("seed %d: second costs %v, want %v", seed, costs[got.Second.Slot], want)
		}
		if costs[got.First.Slot] < 0.99*costs[got.Second.Slot] {
			differ++
		}
	}
	if differ < 200 {
		t.Errorf("first and second differ in %d of 400 pools: the test is too weak", differ)
	}
}
