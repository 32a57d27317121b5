package sim

import (
	"testing"
	"time"
)

// TestAloneIsTheFormula: a request that is alone takes what package step says, in every figure.
func TestAloneIsTheFormula(t *testing.T) {
	_, r := mustRun(t, config("weir", 1), &one{Prompt: 1000, Output: 3, At: 10 * time.Second}, Span{})
	first := 0.015 + 0.0069044 + 1000*27.8e-6
	decode := 0.0069044 + 76e-9*1001.5 // the mean of two steps
	for name, f := range map[string][2]float64{
		"TTFT mean": {r.TTFTMean, first}, "p50": {r.TTFTP50, first}, "p99": {r.TTFTP99, first},
		"TPOT": {r.TPOTMean, decode}, "E2E": {r.E2EMean, first + 2*decode},
		"throughput": {r.Throughput, 1 / (10 + first + 2*decode)}, "goodput": {r.Goodput, 1 / (10 + first + 2*decode)},
		"skew": {r.Skew, 4}, "hit": {r.HitRate, 0}, "ceiling": {r.Ceiling, 0},
	} {
		if f[0] < f[1]-2e-8 || f[0] > f[1]+2e-8 {
			t.Errorf("%s: %v, want %v", name, f[0], f[1])
		}
	}
}

// TestCeilingIsReached by one replica when no two requests meet, and by none with half of the memory each.
func TestCeilingIsReached(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		cfg := config("random", 1)
		cfg.Replicas, cfg.Profile.KVTokens = replicas, 60_000/replicas
		src := newGroups(4, 0.05, 300)
		src.turns = 1
		_, r := mustRun(t, cfg, src, Span{Warmup: 500 * time.Second})
		reached := r.HitRate / r.Ceiling
		if r.Ceiling < 0.4 || r.Ceiling > 0.9 || reached > 1.001 || (reached > 0.997) != (replicas == 1) {
			t.Errorf("%d replicas: hits %v of %v", replicas, r.HitRate, r.Ceiling)
		}
	}
}

// TestSpan: what arrives in the warm-up is sent and not measured, what would come after the end is not sent.
func TestSpan(t *testing.T) {
	src := newGroups(1, 10, 1000)
	src.turns = 3
	s, r := mustRun(t, config("weir", 1), src, Span{Warmup: 20 * time.Second, Until: 50 * time.Second})
	if r.Arrived >= r.Sent || r.Arrived < 200 || r.Sent != s.run.total.arrived {
		t.Errorf("%d measured of %d", r.Arrived, r.Sent)
	}
	if end := s.run.ended; end < 49*time.Second || end > 60*time.Second {
		t.Errorf("the last answer ended at %v", end)
	}
	if rate := float64(r.Arrived) / 30; r.Throughput < 0.9*rate || r.Throughput > 1.1*rate {
		t.Errorf("%v answers/s of %v arrivals/s", r.Throughput, rate)
	}
}

// TestAllHits: they are those of the run without a warm-up, whose first requests miss.
func TestAllHits(t *testing.T) {
	_, whole := mustRun(t, config("weir", 1), newGroups(1, 10, 300), Span{})
	_, warm := mustRun(t, config("weir", 1), newGroups(1, 10, 300), Span{Warmup: 10 * time.Second})
	if warm.AllHits != whole.HitRate || whole.AllHits != whole.HitRate || warm.HitRate <= warm.AllHits {
		t.Errorf("hits of all %v and %v, want %v; after the warm-up %v", whole.AllHits, warm.AllHits, whole.HitRate, warm.HitRate)
	}
}

// TestTogether: two runs together are as if of one.
func TestTogether(t *testing.T) {
	s, a := mustRun(t, config("weir", 1), newGroups(1, 10, 100), Span{})
	b, err := s.Run(newGroups(2, 10, 50), Span{})
	if err != nil {
		t.Fatal(err)
	}
	p := Together([]*Result{a, nil, b})
	if want := (100*a.TTFTMean + 50*b.TTFTMean) / 150; p.Answered != 150 || p.TTFTMean < want-1e-12 || p.TTFTMean > want+1e-12 {
		t.Errorf("%+v, want mean %v", p, want)
	}
	if want := 150 / (a.Lasted + b.Lasted).Seconds(); p.Throughput < want-1e-9 || p.Throughput > want+1e-9 {
		t.Errorf("%v answers/s, want %v", p.Throughput, want)
	}
	if each := p.PromptRate / p.Throughput; each < 2599.9 || each > 2600.1 {
		t.Errorf("%v prompt tokens an answer, want 2600", each)
	}
}
