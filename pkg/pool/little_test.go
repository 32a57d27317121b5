package pool

import (
	"math"
	"math/rand/v2"
	"testing"
)

// busy has leases of 1 to 19 s come at two a second for so long, from the time on, and returns the two sides at its end.
func busy(p *Pool, rng *rand.Rand, from, seconds float64) Little {
	type live struct {
		l    *Lease
		ends float64
	}
	var all []live
	r := p.Replicas[0]
	for now := from; now < from+seconds; now += 0.5 {
		keep := all[:0]
		for _, x := range all {
			if x.ends > now {
				keep = append(keep, x)
				continue
			}
			x.l.Release(at(now), true)
		}
		all = keep
		l := &Lease{}
		p.Charge(at(now), l, r, Load{Prompt: 10, Uncached: 10, Output: 10})
		all = append(all, live{l, now + 1 + 18*rng.Float64()})
	}
	was := r.littleAt(at(from + seconds))
	for _, x := range all {
		x.l.Release(at(from+seconds), true)
	}
	return was
}

// TestLittlesLaw: in steady traffic both sides are the leases that are live, 20; a lease that is never released stays as their
// difference, and three as three.
func TestLittlesLaw(t *testing.T) {
	for _, leaks := range []int{0, 1, 3} {
		p := New("p", []string{"a"}, plain)
		for range leaks {
			p.Charge(at(0), &Lease{}, p.Replicas[0], Load{Prompt: 10, Uncached: 10, Output: 10})
		}
		got := busy(p, rand.New(rand.NewPCG(1, 1)), 0, 3600)
		if l := got.Live - float64(leaks); math.Abs(l-20) > 1 || math.Abs(got.Live-got.Ended-float64(leaks)) > 0.4 {
			t.Errorf("%d leaks: %v live on average, %v by those that ended", leaks, got.Live, got.Ended)
		}
	}
	p := New("p", []string{"a"}, plain)
	if got := p.Replicas[0].littleAt(at(5)); got != (Little{}) {
		t.Errorf("idle: %+v", got)
	}
	busy(p, rand.New(rand.NewPCG(1, 1)), 0, 600)
	if got := p.Replicas[0].littleAt(at(6000)); got.Live > 0.01 || got.Ended > 0.01 {
		t.Errorf("an hour and a half later: %+v", got)
	}
}
