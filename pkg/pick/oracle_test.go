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

// slowSeat is the wait for a place on a replica, by the expected life of those who hold one.
func slowSeat(p *pool.Pool, r *pool.Replica, now time.Time) (wait float64) {
	s, v := r.Stats(now), r.View(now)
	if s.Leases == 0 {
		return 0
	}
	life := (s.PendingTokens - s.BacklogTokens) / float64(s.Leases) * v.Decode // of one lease
	if lacking := s.Leases + 1 - p.Config.Seats; lacking > 0 {
		wait = float64(lacking) * life / float64(s.Leases)
	}
	if v.KV >= 1 {
		own := v.KV / float64(s.Leases) // what the end of one gives back
		wait = math.Max(wait, (1+(v.KV-1)/own)*life/float64(s.Leases))
	}
	return wait
}

// slowCosts is the formula of DESIGN.md, section 4, as it is written there.
func slowCosts(p *pool.Pool, q *Query, now time.Time) []float64 {
	costs := make([]float64, len(p.Replicas))
	waits := 0.0
	for _, r := range p.Replicas {
		v := r.View(now)
		waits += v.Backlog * v.Prefill
	}
	m := 1.0
	if p.Work() > 0 {
		m = 1 + math.Min(waits/float64(len(p.Replicas))/p.Work(), 20)
	}
	for i, r := range p.Replicas {
		v := r.View(now)
		u := math.Max(q.Prompt-64*float64(r.Index.Match(q.Chain)), 1)
		if q.Discount && i == q.Home {
			u *= 0.2
		}
		k := math.Min(v.KV, 0.98)
		costs[i] = v.Backlog*v.Prefill + slowSeat(p, r, now) + u*v.Prefill*m + 0.01*q.Output*v.Decode + 0.1*v.Decode*k/(1-k)
	}
	return costs
}

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
		q.Output, q.Discount = float64(rng.IntN(1000)), rng.IntN(2) == 0
		got, costs := Best(now, p, q), slowCosts(p, q, now)
		if want := slices.Min(costs); math.Abs(got.Cost-want) > 1e-9*want || math.Abs(costs[got.First.Slot]-want) > 1e-9*want {
			t.Fatalf("seed %d: cost %v on %d, want %v of %v", seed, got.Cost, got.First.Slot, want, costs)
		}
		u := max(q.Prompt-float64(64*got.First.Index.Match(q.Chain)), 1)
		if want := (pool.Load{Prompt: q.Prompt, Uncached: u, Output: q.Output}); got.Load != want {
			t.Fatalf("seed %d: load %+v, want %+v: the discount must not reach it", seed, got.Load, want)
		}
		alone := got.View
		alone.Behind = 0
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
		if want := slices.Min(others); got.Second == got.First || math.Abs(costs[got.Second.Slot]-want) > 1e-9*want {
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
