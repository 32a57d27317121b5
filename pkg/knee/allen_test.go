package knee

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// waitsOf simulates c servers with one queue, first come first served, and returns the waits of n requests.
func waitsOf(rng *rand.Rand, c, n int, gap, service func() float64) []float64 {
	free := make([]float64, c) // when each server is
	waits := make([]float64, n)
	now := 0.0
	for i := range waits {
		now += gap()
		first := 0
		for k := range free {
			if free[k] < free[first] {
				first = k
			}
		}
		begin := max(now, free[first])
		waits[i] = begin - now
		free[first] = begin + service()
	}
	return waits
}

// TestAllenCunneen holds mean waits and their tail against simulation: Poisson arrivals, services that are all alike, exponential,
// and of two sorts.
func TestAllenCunneen(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range []struct { // a list: the draws of one sort follow those of the one before
		name string
		cv   float64 // squared
		draw func() float64
	}{
		{"alike", 0, func() float64 { return 1 }},
		{"exponential", 1, rng.ExpFloat64},
		{"two sorts", 1.06*(0.9*0.5*0.5+0.1*5.5*5.5) - 1, func() float64 { // half a second each, but a tenth: 5.5
			if rng.Float64() < 0.1 {
				return 5.5 * spread(rng)
			}
			return 0.5 * spread(rng)
		}},
	} {
		for _, c := range []int{1, 4, 12} {
			for _, rho := range []float64{0.6, 0.85} {
				load := rho * float64(c)
				waits := waitsOf(rng, c, 120_000, func() float64 { return rng.ExpFloat64() / load }, s.draw)[10_000:]
				mean := 0.0
				for _, w := range waits {
					mean += w / float64(len(waits))
				}
				if got := AllenCunneen(c, load, 1, 1, s.cv); math.Abs(got/mean-1) > 0.25 && math.Abs(got-mean) > 0.01 {
					t.Errorf("%s, %d servers at %v: mean wait %.4f, simulated %.4f", s.name, c, rho, got, mean)
				}
				slices.Sort(waits)
				for _, share := range []float64{0.1, 0.01} {
					w := waits[int(float64(len(waits))*(1-share))]
					if w < 0.1 {
						continue
					}
					if got := WaitsLonger(c, load, 1, 1, s.cv, w); got > 2.5*share || got < share/2.5 {
						t.Errorf("%s, %d servers at %v: %.4f wait longer than %.3f, simulated %v", s.name, c, rho, got, w, share)
					}
				}
			}
		}
	}
}

// spread is uniform around 1, of a squared coefficient of variation of 0.06.
func spread(rng *rand.Rand) float64 { return 1 + math.Sqrt(0.18)*(2*rng.Float64()-1) }

func TestAllenCunneenEdges(t *testing.T) {
	for _, c := range []struct{ got, want float64 }{
		{AllenCunneen(1, 0.5, 2, 1, 1), QueueWait(1, 0.5, 2)},
		{AllenCunneen(1, 0.5, 2, 1, 0), QueueWait(1, 0.5, 2) / 2}, // M/D/1
		{AllenCunneen(4, 4, 1, 1, 1), math.Inf(1)},
		{WaitsLonger(4, 4, 1, 1, 1, 100), 1},
		{WaitsLonger(4, 0, 1, 1, 1, 0), 0},
		{WaitsLonger(4, 3, 1, 1, 1, 0), ErlangC(4, 3)},
		{WaitsLonger(4, 3, 1, 1, 1, 2), ErlangC(4, 3) * math.Exp(-2)}, // M/M/c: c - load servers are left to it
		{WaitsLonger(4, 3, 1, 0, 0, 2), 0},                            // nobody waits for long where all is even
	} {
		if c.got != c.want && !near(c.got, c.want) {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
}
