package knee_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/knee"
)

var (
	small = knee.Rates{Step: 0.0069, Seq: 4.4e-6, Context: 76e-9, Token: 27.8e-6, Chunk: 8192}
	large = knee.Rates{Step: 0.0167, Seq: 4.4e-6, Context: 48e-9, Token: 61.9e-6, Chunk: 8192}
)

// truth makes samples of a replica by its constants: the oracle of these tests.
type truth struct {
	rates knee.Rates
	slow  float64
	noise float64 // standard deviation of the logarithm of a sample; its mean is right
	rng   *rand.Rand
	n     int
}

// sample draws a load up to that of a busy replica. varied false: always the same one.
func (r *truth) sample(varied bool) knee.Steps {
	s := knee.Steps{Gaps: 500, Seqs: 30, Context: 150_000, Prompt: 5000}
	if varied {
		s.Seqs, s.Context, s.Prompt = 60*r.rng.Float64(), 400_000*r.rng.Float64(), 9000*r.rng.Float64()
	}
	// g = D + p*q*g
	s.Gap = r.rates.Decode(s.Seqs, s.Context) * r.slow / (1 - r.rates.Token*s.Prompt*r.slow)
	s.Gap *= math.Exp(r.noise*r.rng.NormFloat64() - r.noise*r.noise/2)
	r.n++
	s.At = time.Unix(int64(r.n), 0)
	return s
}

func of(rates knee.Rates, noise float64) *truth {
	return &truth{rates: rates, slow: 1, noise: noise, rng: rand.New(rand.NewPCG(1, 2))}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got/want-1) <= within) {
		t.Errorf("%s: %.4g, want %.4g within %.0f %%", what, got, want, 100*within)
	}
}

// TestFitFindsConstants: from one model's constants to another's, either way, each by itself. No profile has to be named.
func TestFitFindsConstants(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to knee.Rates
	}{{"8B to 70B", small, large}, {"70B to 8B", large, small}} {
		t.Run(c.name, func(t *testing.T) {
			f, r := knee.NewFit(c.from), of(c.to, 0.05)
			for range 300 {
				f.Observe(r.sample(true))
			}
			got := f.Rates()
			near(t, "c0", got.Step, c.to.Step, 0.15)
			near(t, "b", got.Context, c.to.Context, 0.15)
			near(t, "p", got.Token, c.to.Token, 0.1)
			if got.Chunk != c.from.Chunk {
				t.Errorf("a chunk of %v", got.Chunk)
			}
			l := f.Learned()
			for i, s := range l.Spreads {
				if !(s > 0 && s < 0.5) {
					t.Errorf("spread %d: %v", i, s)
				}
			}
			if l.Samples != 300 || !l.At.Equal(time.Unix(300, 0)) {
				t.Errorf("%d samples, the last at %v", l.Samples, l.At)
			}
		})
	}
}

// TestFitWithOneLoad: what all samples tell alike leaves the constants in their ratio, and a step of that load is right.
func TestFitWithOneLoad(t *testing.T) {
	f, r := knee.NewFit(small), of(small, 0)
	r.slow = 1.7
	for range 100 {
		f.Observe(r.sample(false))
	}
	got := f.Rates()
	for what, x := range map[string]float64{"c0": got.Step / small.Step, "b": got.Context / small.Context, "p": got.Token / small.Token} {
		near(t, what, x, 1.7, 0.15)
	}
	near(t, "slow", f.Learned().Slow, 1.7, 0.02)
}

// TestFitFollows: a replica that slows to a half is found within 30 samples, and again when it recovers; a cold start with a
// rate that is wrong by a factor of two, too.
func TestFitFollows(t *testing.T) {
	f, r := knee.NewFit(small), of(small, 0.05)
	for _, slow := range []float64{2, 1, 2, 0.5, 1} {
		r.slow = slow
		for range 30 {
			f.Observe(r.sample(true))
		}
		near(t, "slow", f.Learned().Slow, slow, 0.15)
	}
}

// TestFitDoesNotRatchet: an hour of samples that are wrong by 30 % either way, right in the mean. A rule that goes by the sign
// or the ratio of an error walks away under such noise (simulated: 1.5 to 8.7 where 1 is right).
func TestFitDoesNotRatchet(t *testing.T) {
	f, r := knee.NewFit(small), of(small, 0.3)
	var sum, squares float64
	n := 0
	for i := range 3600 {
		f.Observe(r.sample(true))
		if i < 120 {
			continue
		}
		s := f.Learned().Slow
		if s < 0.5 || s > 2 {
			t.Fatalf("%.2f times as slow after %d s", s, i)
		}
		n++
		sum += s
		squares += s * s
	}
	mean := sum / float64(n)
	near(t, "mean", mean, 1, 0.05)
	if spread := math.Sqrt(squares/float64(n)-mean*mean) / mean; spread > 0.15 {
		t.Errorf("spread %.2f", spread)
	}
}

// TestFitSteady: with samples that are 10 % off, the learned rate varies by 10 % at most.
func TestFitSteady(t *testing.T) {
	f, r := knee.NewFit(small), of(small, 0.1)
	var sum, squares float64
	n := 0
	for i := range 3600 {
		f.Observe(r.sample(true))
		if i >= 120 {
			s := f.Learned().Slow
			n++
			sum += s
			squares += s * s
		}
	}
	mean := sum / float64(n)
	if spread := math.Sqrt(squares/float64(n)-mean*mean) / mean; spread > 0.1 {
		t.Errorf("spread %.3f", spread)
	}
	near(t, "error", f.Learned().Error, 0.1, 0.5)
}

// TestFitIgnores: what no replica can have done changes nothing, and too little to tell neither.
func TestFitIgnores(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	good := knee.Steps{Gap: 0.05, Gaps: 10, Seqs: 3, Context: 1000, Prompt: 100}
	for i, bad := range []func(*knee.Steps){
		func(s *knee.Steps) { s.Gap = 0 }, func(s *knee.Steps) { s.Gap = -1 }, func(s *knee.Steps) { s.Gap = nan }, func(s *knee.Steps) { s.Gap = inf },
		func(s *knee.Steps) { s.Gaps = 4.9 }, func(s *knee.Steps) { s.Gaps = nan },
		func(s *knee.Steps) { s.Seqs = -1 }, func(s *knee.Steps) { s.Seqs = nan }, func(s *knee.Steps) { s.Seqs = inf },
		func(s *knee.Steps) { s.Context = -1 }, func(s *knee.Steps) { s.Context = nan }, func(s *knee.Steps) { s.Context = inf },
		func(s *knee.Steps) { s.Prompt = -1 }, func(s *knee.Steps) { s.Prompt = nan }, func(s *knee.Steps) { s.Prompt = inf },
	} {
		f := knee.NewFit(small)
		s := good
		bad(&s)
		f.Observe(s)
		if f != knee.NewFit(small) {
			t.Errorf("%d: %+v is learned from", i, s)
		}
	}
	f := knee.NewFit(small)
	f.Observe(good)
	if f == knee.NewFit(small) {
		t.Error("nothing is learned from a good one")
	}
}

// FuzzFit: whatever replicas tell, the constants stay positive and bounded, and what is believed of them a number.
func FuzzFit(f *testing.F) {
	f.Add(0.05, 10.0, 3.0, 1000.0, 100.0, uint8(3))
	f.Add(1e300, 5.0, 1e300, 1e300, 1e300, uint8(200))
	f.Add(5e-324, 5.0, 0.0, 0.0, 0.0, uint8(9))
	f.Fuzz(func(t *testing.T, gap, gaps, seqs, context, prompt float64, n uint8) {
		fit := knee.NewFit(small)
		r := of(small, 0.1)
		for range n {
			fit.Observe(knee.Steps{Gap: gap, Gaps: gaps, Seqs: seqs, Context: context, Prompt: prompt})
			fit.Observe(r.sample(true))
		}
		l := fit.Learned()
		for _, x := range []float64{l.Rates.Step / small.Step, l.Rates.Context / small.Context, l.Rates.Token / small.Token} {
			if !(x > 0.01 && x < 100) {
				t.Fatalf("%+v", l)
			}
		}
		for _, x := range append(l.Spreads[:], l.Slow, l.Spread, l.Error) {
			if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
				t.Fatalf("%+v", l)
			}
		}
	})
}
