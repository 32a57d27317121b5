package step

import (
	"testing"

	"github.com/weirproxy/weir/pkg/pool"
)

// TestProfilesAreThoseOfWeir: the simulated replica is what weir thinks a replica is, unless a test says otherwise.
func TestProfilesAreThoseOfWeir(t *testing.T) {
	for _, p := range profiles {
		got, ok := pool.Default(p.Name)
		want := pool.Config{
			Profile: p.Name, Step: p.Base, PerSequence: p.PerSeq, PerContextToken: p.PerContext, PerPromptToken: p.PerPrefill,
			Chunk: p.MaxBatch, KVTokens: p.KVTokens, Seats: p.MaxSeqs,
			OutputTokens: got.OutputTokens, MaxKVPercent: 100, Learn: true, // what weir does, and no property of the replica
		}
		if !ok || got != want {
			t.Errorf("%s: weir has %+v, %v\nand the simulated replica is %+v", p.Name, got, ok, want)
		}
		if got.OutputTokens < 1 {
			t.Errorf("%s: %d output tokens expected", p.Name, got.OutputTokens)
		}
	}
	if len(profiles) != 3 {
		t.Errorf("%d profiles, and weir's are three", len(profiles))
	}
}
