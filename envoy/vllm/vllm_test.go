//go:build vllm

package vllm

import (
	"flag"
	"testing"
)

var (
	python    = flag.String("python", "", "a Python that has vLLM: what get.sh prints")
	recording = flag.Bool("record", false, "write what vLLM told to the testdata of pkg/scrape and pkg/prompt")
)

// TestVLLM is one story, in stages that need what went before.
func TestVLLM(t *testing.T) {
	r := startRig(t)
	for _, s := range []struct {
		name string
		run  func(*testing.T, *rig)
	}{
		{"the size of the cache is vLLM's", sizes},
		{"token ids count exactly, and hit by the block", tokenIDs},
		{"texts hit by the block", texts},
		{"a mix larger than the caches", mix},
		{"documents in turn", cycle},
		{"a steady load shows in the gauges and in the time between tokens", steady},
		{"a prompt that is refused is not cached", refused},
		{"clients leave", leave},
		{"vLLM's own queue fills", queue},
		{"several answers to a prompt", several},
		{"what was asked is what vLLM counted", sums},
		{"a vLLM is killed and comes back", restart},
		{"with its seats known, vLLM's queue stays empty", gate},
	} {
		t.Run(s.name, func(t *testing.T) { s.run(t, r) })
	}
	r.printErrors()
}
