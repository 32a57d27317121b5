package sim

import (
	"testing"

	"github.com/weirproxy/weir/pkg/lab/policy"
)

// TestOracleIsNeverWorse: true knowledge in weir's own rule loses to weir only by chance, on loads below the knee.
// And weir beats what knows nothing, or this test could not fail.
func TestOracleIsNeverWorse(t *testing.T) {
	for _, rate := range []float64{8, 24} {
		mean := map[string]float64{}
		for _, name := range []string{"oracle", policy.Weir, "round-robin"} {
			for seed := range uint64(3) {
				_, r := mustRun(t, config(name, seed), newGroups(seed, rate, 800), Span{})
				mean[name] += r.TTFTMean / 3
			}
		}
		if mean["oracle"] > 1.03*mean[policy.Weir] {
			t.Errorf("%v/s: oracle %v, weir %v", rate, mean["oracle"], mean[policy.Weir])
		}
		if mean[policy.Weir] > 0.9*mean["round-robin"] {
			t.Errorf("%v/s: weir %v, round robin %v", rate, mean[policy.Weir], mean["round-robin"])
		}
	}
}
