package sim

import (
	"cmp"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// figuresOf runs a workload's first minutes on its own replicas.
func figuresOf(t *testing.T, name string, load float64, cfg Config, span Span) *Result {
	t.Helper()
	i, err := workload.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Seed = cmp.Or(cfg.Seed, 1)
	stages, err := i.Stages(workload.Params{Rate: load, Seed: cfg.Seed, Length: span.Until})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Policy, cfg.Replicas, cfg.Profile = cmp.Or(cfg.Policy, policy.Weir), i.Replicas, profile(t, i.Profile)
	_, r := mustRun(t, cfg, stages[0].Source, span)
	return r
}

// TestRoutersTogether: two routers that know nothing of each other, with gauges a second old, keep nearly all of one router's
// hits, and do not collapse where one router is near its knee, though now and then a queue grows at a home there. One seed
// each: the targets are for medians (docs/targets.md), and the times near a knee differ by several times between seeds.
func TestRoutersTogether(t *testing.T) {
	short, long := Span{Warmup: 90 * time.Second, Until: 240 * time.Second}, Span{Warmup: 120 * time.Second, Until: 600 * time.Second}
	for _, c := range []struct {
		name       string
		load       float64
		hits, ttft float64 // of one router's
		span       Span
	}{
		{"W3", 14, 0.95, 5, short}, {"W3-fresh", 12, 0.95, 5, short}, {"W5-35", 16, 0.94, 1.6, short},
		{"W6-chat", 35, 0.92, 1.6, long},
	} {
		span := c.span
		one := figuresOf(t, c.name, c.load, Config{Routers: 1}, span)
		two := figuresOf(t, c.name, c.load, Config{Routers: 2, Stale: time.Second}, span)
		t.Logf("%s at %v/s: hits %.1f and %.1f %%, TTFT %.3f and %.3f s", c.name, c.load, 100*one.HitRate, 100*two.HitRate, one.TTFTMean, two.TTFTMean)
		if two.HitRate < c.hits*one.HitRate {
			t.Errorf("%s at %v/s: two routers hit %.1f %%, one %.1f", c.name, c.load, 100*two.HitRate, 100*one.HitRate)
		}
		if two.Throughput < 0.97*one.Throughput {
			t.Errorf("%s at %v/s: %.2f answers/s with two routers, %.2f with one", c.name, c.load, two.Throughput, one.Throughput)
		}
		if two.TTFTMean > c.ttft*one.TTFTMean {
			t.Errorf("%s at %v/s: TTFT %.3f s with two routers, %.3f with one", c.name, c.load, two.TTFTMean, one.TTFTMean)
		}
	}
}

// TestBulkBesideAnotherRouter: the bulk of one router does not run over the interactive requests of the other.
func TestBulkBesideAnotherRouter(t *testing.T) {
	span := Span{Warmup: 30 * time.Second, Until: 150 * time.Second}
	for _, load := range []float64{15, 40} {
		one := figuresOf(t, "W7-1", load, Config{Routers: 1}, span).Classes
		two := figuresOf(t, "W7-1", load, Config{Routers: 2, Stale: time.Second}, span).Classes
		t.Logf("%v/s: interactive p99 %.3f and %.3f s, bulk %.2f and %.2f/s", load, one["interactive"].TTFTP99, two["interactive"].TTFTP99, one["bulk"].Throughput, two["bulk"].Throughput)
		if two["interactive"].TTFTP99 > 2*one["interactive"].TTFTP99 {
			t.Errorf("%v/s: interactive p99 %.3f s with two routers, %.3f with one", load, two["interactive"].TTFTP99, one["interactive"].TTFTP99)
		}
		if two["bulk"].Throughput < 0.5*one["bulk"].Throughput {
			t.Errorf("%v/s: bulk %.2f/s with two routers, %.2f with one", load, two["bulk"].Throughput, one["bulk"].Throughput)
		}
	}
}

// TestRestartFindsTheCaches: of two routers one starts anew; the hits are back at 0.9 of before within a minute.
func TestRestartFindsTheCaches(t *testing.T) {
	events, _ := ParseEvents("restart:0@200s")
	for _, routers := range []int{1, 2} {
		for name, load := range map[string]float64{"W3": 10, "W9": 20} {
			before := figuresOf(t, name, load, Config{Routers: routers, Stale: time.Second}, Span{Warmup: 140 * time.Second, Until: 200 * time.Second})
			after := figuresOf(t, name, load, Config{Routers: routers, Stale: time.Second, Events: events}, Span{Warmup: 245 * time.Second, Until: 265 * time.Second})
			t.Logf("%s, %d routers: hits %.1f %% before, %.1f a minute after", name, routers, 100*before.HitRate, 100*after.HitRate)
			if after.HitRate < 0.9*before.HitRate {
				t.Errorf("%s, %d routers: hits %.1f %% before, %.1f a minute after", name, routers, 100*before.HitRate, 100*after.HitRate)
			}
		}
	}
}

func profile(t *testing.T, name string) step.Profile {
	t.Helper()
	p, err := step.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
