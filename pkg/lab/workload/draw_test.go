package workload

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// near reports whether got is within a share of want.
func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if !(math.Abs(got-want) <= share*math.Abs(want)) {
		t.Errorf("%s: %.4g, want %.4g within %.1f %%", what, got, want, 100*share)
	}
}

// moments is the mean and the coefficient of variation of n draws.
func moments(n int, draw func() float64) (mean, cv float64) {
	var sum, squares float64
	for range n {
		x := draw()
		sum, squares = sum+x, squares+x*x
	}
	mean = sum / float64(n)
	return mean, math.Sqrt(squares/float64(n)-mean*mean) / mean
}

func TestGaps(t *testing.T) {
	for _, c := range []struct {
		name        string
		gap         func(*rand.Rand) float64
		cv          float64
		mean, share float64 // tolerances
	}{
		{"poisson", poisson, 1, 0.01, 0.01},
		{"bursts 0.5", bursts(0.5), 0.5, 0.01, 0.01},
		{"bursts 3", bursts(3), 3, 0.02, 0.03},
		{"bursts 13", bursts(13), 13, 0.05, 0.1},
	} {
		rng := rand.New(rand.NewPCG(7, 7))
		mean, cv := moments(1_000_000, func() float64 { return c.gap(rng) })
		near(t, c.name+" mean", mean, 1, c.mean)
		near(t, c.name+" CV", cv, c.cv, c.share)
	}
}

func TestDraws(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	l := logNormal{mean: 500, sigma: 0.7, low: 1, high: 1_000_000}
	mean, cv := moments(200_000, func() float64 { return float64(l.draw(rng)) })
	near(t, "log-normal mean", mean, 500, 0.01)
	near(t, "log-normal CV", cv, math.Sqrt(math.Exp(0.49)-1), 0.03)
	l.low, l.high = 400, 600
	for range 1000 {
		if n := l.draw(rng); n < 400 || n > 600 {
			t.Fatalf("log-normal %d is not clamped", n)
		}
	}
	g := turns{mean: 5, cap: 8}
	mean, _ = moments(200_000, func() float64 { return float64(g.draw(rng)) })
	near(t, "turns", mean, g.expected(), 0.01)
	near(t, "turns by hand", turns{mean: 2, cap: 2}.expected(), 1.5, 1e-9)
}

func TestMerged(t *testing.T) {
	at := func(ms ...int) *list {
		var l list
		for _, m := range ms {
			l = append(l, &Request{At: time.Duration(m) * time.Millisecond})
		}
		return &l
	}
	m := &merged{a: at(1, 4, 4, 9), b: at(2, 3, 4, 12, 13)}
	var got []time.Duration
	for r, ok := m.Next(); ok; r, ok = m.Next() {
		got = append(got, r.At/time.Millisecond)
	}
	if want := []time.Duration{1, 2, 3, 4, 4, 4, 9, 12, 13}; len(got) != len(want) {
		t.Fatalf("merged %v, want %v", got, want)
	} else {
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("merged %v, want %v", got, want)
			}
		}
	}
	if _, ok := m.Next(); ok {
		t.Error("a source that ended goes on")
	}
}
