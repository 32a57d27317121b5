package sim

import (
	"reflect"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/step"
)

// mixed is four replicas of two profiles, by turns, of three sizes.
func mixed(t *testing.T, name string, seed uint64) Config {
	cfg := config(name, seed)
	cfg.Each = []step.Profile{profile(t, "8B"), profile(t, "32B"), profile(t, "8B")}
	for i, kv := range []int{60_000, 30_000, 15_000} {
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
