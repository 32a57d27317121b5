package knee

import (
	"math"
	"testing"
)

func wait(k, share, life float64) float64 { return MemoryWith(k).Wait(NeedOf(share), life) }

// One request that takes all memory waits as in M/M/1; the exponents of 7 and 17 servers are 3 and 5.
func TestMemoryWait(t *testing.T) {
	for _, c := range []struct{ k, share, life, want float64 }{
		{0.5, 1, 10, 10},
		{0.75, 1, 10, 30},
		{0.5, 3, 10, 10}, // more than all is all
		{0.5, 1. / 7, 7, 0.125 / 0.5},
		{0.5, 1. / 17, 17, 0.03125 / 0.5},
		{0.98, 1, 1, 49},
		{1, 1, 1, 49},
		{math.Inf(1), 1, 1, 49},
		{0, 1, 10, 0},
		{-0.5, 1, 10, 0},
		{0.9, 0, 10, 0},
		{0.9, 0.5, 0, 0},
	} {
		if got := wait(c.k, c.share, c.life); !(math.Abs(got-c.want) <= 1e-9*max(1, c.want)) {
			t.Errorf("with %v in use a share of %v for %v s waits %v s, want %v", c.k, c.share, c.life, got, c.want)
		}
	}
	if a, b := wait(math.NaN(), 0.5, 1), wait(0.5, math.NaN(), 1); !math.IsNaN(a) || !math.IsNaN(b) {
		t.Errorf("of no number come %v and %v", a, b)
	}
	small, giant := wait(0.8, 0.003, 60), wait(0.8, 0.3, 60)
	if small > 0.05 || giant < 5 {
		t.Errorf("at 0.8 of memory a small request waits %v s, a giant %v", small, giant)
	}
}

// What is left out as negligible is: against the formula as it is written, over all loads and sizes.
func TestMemoryWaitNegligible(t *testing.T) {
	for k := 0.005; k < 0.98; k += 0.005 {
		for c := 1.0; c < 5000; c *= 1.1 {
			want := 60 / c * math.Pow(k, math.Sqrt(2*(c+1))-1) / (1 - k)
			if got := wait(k, 1/c, 60); math.Abs(got-want) > 1e-5+1e-9*want {
				t.Fatalf("k %v, c %v: %v, want %v", k, c, got, want)
			}
		}
	}
}
