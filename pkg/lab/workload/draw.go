package workload

import (
	"math"
	"math/rand/v2"
)

// source is the randomness of one part of a workload, so that a change to one part leaves the others.
func source(seed, part uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, part)) }

// The parts.
const (
	ofArrivals = iota + 1
	ofTexts
	ofBulkArrivals
	ofBulk
)

// logNormal draws whole numbers whose logarithm is normal, clamped.
type logNormal struct {
	mean  float64 // before clamping
	sigma float64 // of the logarithm
	low   int
	high  int
}

func (l logNormal) draw(rng *rand.Rand) int {
	x := math.Exp(math.Log(l.mean) - l.sigma*l.sigma/2 + l.sigma*rng.NormFloat64())
	return int(math.Round(min(max(x, float64(l.low)), float64(l.high))))
}

// turns draws how many turns a session has: geometric with the given mean before the cap, 1 to cap.
type turns struct {
	mean float64
	cap  int
}

func (g turns) draw(rng *rand.Rand) int {
	n := 1
	for n < g.cap && rng.Float64() >= 1/g.mean {
		n++
	}
	return n
}

// expected is the mean with the cap: sum over k < cap of the chance of more than k turns.
func (g turns) expected() float64 {
	return g.mean * (1 - math.Pow(1-1/g.mean, float64(g.cap)))
}

// gamma draws from the gamma distribution of that shape and mean 1: Marsaglia and Tsang's rejection for
// shapes from 1 on (ACM TOMS 26, 2000), and for smaller ones the shape above, times U^(1/shape).
func gamma(rng *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(rng, shape+1) * (shape + 1) / shape * math.Pow(rng.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-rng.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v / shape
		}
	}
}
