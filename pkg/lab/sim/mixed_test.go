package sim

import (
	"reflect"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// mixed is four replicas of two profiles and three sizes.
func mixed(t *testing.T, name string, seed uint64) Config {
	cfg := config(name, seed)
	cfg.Each = []step.Profile{profile(t, "8B"), profile(t, "32B"), profile(t, "8B"), profile(t, "8B")}
	for i, kv := range []int{60_000, 30_000, 15_000, 60_000} {
		cfg.Each[i].KVTokens = kv
	}
	return cfg
}

// TestMixedReplicas: every policy over replicas of several kinds, of which one dies and one joins: all that comes in goes out
// (Run checks it), the same seed gives the same result, and each replica is what its place says, those that join too.
func TestMixedReplicas(t *testing.T) {
	for _, name := range policy.Names() {
		var last *Result
		for range 2 {
			cfg := mixed(t, name, 1)
			cfg.Events, _ = ParseEvents("slow:0:0.5@1s,die:1@3s,join:1@4s")
			src := newGroups(1, 30, 200)
			src.turns, src.bulk = 1, true
			s, r := mustRun(t, cfg, src, Span{})
			if last != nil && !reflect.DeepEqual(r, last) {
				t.Errorf("%s: two runs differ", name)
			}
			last = r
			for i, want := range []int{60_000, 30_000, 15_000, 60_000} {
				if got := s.replicas[i].Stats().KVBlocks; got != want/step.BlockTokens {
					t.Errorf("%s: replica %d has %d blocks, want %d tokens", name, i, got, want)
				}
			}
		}
	}
	cfg := mixed(t, policy.Weir, 1)
	if got := cfg.KVTokens(); got != 165_000 {
		t.Errorf("%d tokens of KV together, want 165,000", got)
	}
}

// TestMixedSpeeds: alone on an idle replica a request takes what its place's profile says.
func TestMixedSpeeds(t *testing.T) {
	for slot := range 4 {
		cfg := mixed(t, "random", 1)
		s := withFakes(t, cfg, &fake{state: policy.Sent, slot: slot})
		r, err := s.Run(&one{Prompt: 2000, Output: 2, At: time.Second}, Span{})
		if err != nil {
			t.Fatal(err)
		}
		p := cfg.profile(slot)
		want := (p.API + p.StepTime(1, 0, 2000)).Seconds()
		if r.TTFTMean < want-1e-9 || r.TTFTMean > want+1e-9 {
			t.Errorf("replica %d, a %s: TTFT %v, want %v", slot, p.Name, r.TTFTMean, want)
		}
	}
}

// TestSmallReplica: one replica of four has a quarter of the memory that the router's policy says, and weir, which reads the
// size from its metrics, is as good as the oracle. With the policy's size p99 is nine times the oracle's.
func TestSmallReplica(t *testing.T) {
	w, err := workload.Lookup("W6")
	if err != nil {
		t.Fatal(err)
	}
	p99 := func(name string) float64 {
		cfg := Config{Profile: profile(t, w.Profile), Replicas: 4, Routers: 1, Policy: name, Seed: 1}
		small := cfg.Profile
		small.KVTokens /= 4
		cfg.Each = []step.Profile{cfg.Profile, cfg.Profile, cfg.Profile, small}
		span := Span{Warmup: 2 * time.Minute, Until: 5 * time.Minute}
		stages, err := w.Stages(workload.Params{Rate: 12, Seed: 1, Length: span.Until})
		if err != nil {
			t.Fatal(err)
		}
		_, r := mustRun(t, cfg, stages[0].Source, span)
		t.Logf("%s: TTFT mean %.3f s, p99 %.3f, hits %.1f %%", name, r.TTFTMean, r.TTFTP99, 100*r.HitRate)
		return r.TTFTP99
	}
	if weir, oracle := p99(policy.Weir), p99("oracle"); weir > 1.5*oracle {
		t.Errorf("TTFT p99 %.3f s, the oracle's %.3f", weir, oracle)
	}
}
