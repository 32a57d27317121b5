package load

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/lab/step"
)

// TestCompletionHasItsBlocks makes prompts that share their first blocks, by chance, and holds that a router reads them as
// long as they are, and finds the same blocks shared that the hashes share.
func TestCompletionHasItsBlocks(t *testing.T) {
	const each = chain.BlockTokens / step.BlockTokens
	rng := rand.New(rand.NewPCG(1, 1))
	prompts := [][]uint64{nil}
	for range 60 {
		from := prompts[rng.IntN(len(prompts))]
		blocks := append([]uint64(nil), from[:rng.IntN(len(from)+1)]...)
		for range rng.IntN(20) {
			blocks = append(blocks, rng.Uint64())
		}
		prompts = append(prompts, blocks)
	}
	var chains []chain.Chain
	for _, blocks := range prompts {
		tokens := len(blocks)*step.BlockTokens + 1 + rng.IntN(step.BlockTokens-1)
		a := Completion("m", "kind", time.Second, append(blocks, 1, 2, 3), tokens, 7) // the answer's blocks are not for it
		p := parsed(t, &a)
		if a.At != time.Second || a.Kind != "kind" || p.Tokens != tokens || p.MaxTokens != 7 || !p.Stream || len(p.Chain) != tokens/chain.BlockTokens {
			t.Fatalf("%d blocks and %d tokens: read as %+v of %v", len(blocks), tokens, p, a.At)
		}
		chains = append(chains, append(chain.Chain(nil), p.Chain...))
	}
	for i := range prompts {
		for k := range prompts[:i] {
			if got, want := common(chains[i], chains[k]), common(prompts[i], prompts[k])/each; got != want {
				t.Errorf("prompts %d and %d share %d blocks of the chain, want %d", i, k, got, want)
			}
		}
	}
}

func common[T comparable](a, b []T) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
