package sim

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// TestIndexCapacityIsLearned: a policy that says twice the memory that replicas have is found out by the hits that do not come;
// one that says what they have is left as it is.
func TestIndexCapacityIsLearned(t *testing.T) {
	for _, c := range []struct {
		policy    string
		low, high float64
	}{{policy.Weir, 0.9, 1}, {policy.Weir + "/kv_tokens=842000", 0.4, 0.75}} {
		w, err := workload.Lookup("W5-35")
		if err != nil {
			t.Fatal(err)
		}
		stages, err := w.Stages(workload.Params{Rate: 16, Seed: 1, Length: 4 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		s, _ := mustRun(t, Config{Routers: 1, Policy: c.policy, Seed: 1, Replicas: w.Replicas, Profile: profile(t, w.Profile)}, stages[0].Source, Span{Until: 4 * time.Minute})
		stats, ok := s.Estimates(0)
		if !ok || len(stats.Replicas) != w.Replicas {
			t.Fatal("weir shows nothing of itself")
		}
		for _, r := range stats.Replicas {
			if r.IndexShare < c.low || r.IndexShare > c.high {
				t.Errorf("%s: %s is taken to hold %v of its size, want %v to %v", c.policy, r.Endpoint, r.IndexShare, c.low, c.high)
			}
		}
	}
}
