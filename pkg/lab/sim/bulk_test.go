package sim

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/workload"
)

// frontierSeeds are taken together, as one has a p99 that is a hundredth off either way.
const frontierSeeds = 3

// TestBulkFrontier: beside more bulk than replicas hold, interactive p99 is at most 1.15 times what it is alone while bulk
// gets 0.8 of the leftover, with a tenth of prefill interactive, and 1.1 times with 0.4 of it, with three tenths. The first is
// met by less than what three minutes tell, so that 1.2 is the bound here (docs/targets.md has it over five).
func TestBulkFrontier(t *testing.T) {
	span := Span{Warmup: time.Minute, Until: 3 * time.Minute}
	for _, c := range []struct{ load, ratio, share float64 }{{15, 1.2, 0.8}, {40, 1.1, 0.4}} {
		ratio, share := 0.0, 0.0
		for seed := range uint64(frontierSeeds) {
			alone := figuresOf(t, "W7-0", c.load, Config{Routers: 1, Seed: seed + 1}, span).Classes
			beside := figuresOf(t, "W7-2", c.load, Config{Routers: 1, Seed: seed + 1}, span).Classes
			ratio += beside["interactive"].TTFTP99 / alone["interactive"].TTFTP99 / frontierSeeds
			share += beside["bulk"].Throughput / workload.Leftover(c.load, 8) / frontierSeeds
		}
		t.Logf("%v/s: p99 %.3f times that without bulk, which gets %.2f of the leftover", c.load, ratio, share)
		if ratio > c.ratio || share < c.share {
			t.Errorf("%v/s: p99 %.3f times that without bulk, want %v, and bulk gets %.2f of the leftover, want %v", c.load, ratio, c.ratio, share, c.share)
		}
	}
}
