package knee

import (
	"math"
	"math/big"
	"testing"
)

// TestErlangCIsTheTable: values of the usual tables of the formula.
func TestErlangCIsTheTable(t *testing.T) {
	for _, v := range []struct {
		c    int
		load float64
		want float64
	}{
		{1, 0.5, 0.5}, {1, 0.9, 0.9}, {2, 1, 1.0 / 3}, {2, 1.8, 0.8526}, {3, 2, 4.0 / 9}, {4, 3, 0.5094}, {5, 4, 0.5541}, {10, 8, 0.4092}, {10, 9, 0.6687},
		{4, 0, 0}, {4, 4, 1}, {4, 5, 1}, {4, math.NaN(), 1}, {4, math.Inf(1), 1},
	} {
		if got := ErlangC(v.c, v.load); !(math.Abs(got-v.want) < 5e-5) {
			t.Errorf("%d servers, load %v: %v, want %v", v.c, v.load, got, v.want)
		}
	}
}

// exactErlangC is the sum of the textbook, in fractions: p_c*c/(c-a) over that and the p_k below c, with p_k = a^k/k!.
func exactErlangC(c int, load float64) float64 {
	a, p, sum := new(big.Rat).SetFloat64(load), big.NewRat(1, 1), new(big.Rat)
	for k := range c {
		sum.Add(sum, p)
		p.Mul(p, a)
		p.Quo(p, big.NewRat(int64(k+1), 1))
	}
	last := new(big.Rat).Quo(big.NewRat(int64(c), 1), new(big.Rat).Sub(big.NewRat(int64(c), 1), a))
	last.Mul(last, p)
	c64, _ := last.Quo(last, sum.Add(sum, last)).Float64()
	return c64
}

func TestErlangCIsExact(t *testing.T) {
	for _, c := range []int{1, 2, 3, 8, 40, 200} {
		for _, rho := range []float64{1.0 / 1024, 0.25, 0.5, 0.875, 1023.0 / 1024} {
			load := rho * float64(c)
			if got, want := ErlangC(c, load), exactErlangC(c, load); math.Abs(got-want) > 1e-13*want {
				t.Errorf("%d servers, load %v: %v, want %v", c, load, got, want)
			}
		}
	}
	// Where factorials overflow: 1e5 servers hardly wait at 0.99, and nearly all do at 1 - 1e-7.
	if low, high := ErlangC(100_000, 99_000), ErlangC(100_000, 99_999.99); !(low > 0 && low < 0.01 && high > 0.999 && high < 1) {
		t.Errorf("100,000 servers: %v and %v", low, high)
	}
}

func TestQueueWait(t *testing.T) {
	for _, v := range []struct {
		c                   int
		load, service, want float64
	}{
		{1, 0.5, 2, 2}, // M/M/1: rho/(1-rho) times the service
		{1, 0.75, 1, 3},
		{2, 1, 3, 1},
		{4, 0, 1, 0},
		{4, 4, 1, math.Inf(1)},
		{4, math.NaN(), 1, math.Inf(1)},
	} {
		if got := QueueWait(v.c, v.load, v.service); got != v.want && !near(got, v.want) {
			t.Errorf("%d servers, load %v, service %v: %v, want %v", v.c, v.load, v.service, got, v.want)
		}
	}
}

// One server has C = load, so load*exp(load-1) is the share; of more the textbook says that the share is reached there.
func TestMaxLoad(t *testing.T) {
	if a := MaxLoad(1, 0.01); math.Abs(a*math.Exp(a-1)-0.01) > 1e-8 {
		t.Errorf("one server takes %v", a)
	}
	if got := MaxLoad(0, 0.01); got != 0 {
		t.Errorf("no server takes %v", got)
	}
	for _, share := range []float64{0.001, 0.01, 0.3} {
		last := 0.0
		for c := 1; c <= 40; c++ {
			a := MaxLoad(c, share)
			if a <= last || a >= last+1 || a >= float64(c) {
				t.Errorf("%d servers take %v, one less %v", c, a, last)
			}
			for _, off := range []float64{-1e-6, 1e-6} {
				at := a + off
				if waits := exactErlangC(c, at) * math.Exp(at-float64(c)); (waits > share) != (off > 0) {
					t.Errorf("of %d servers at %v + %v a share of %v waits for long, want %v", c, a, off, waits, share)
				}
			}
			last = a
		}
	}
}
