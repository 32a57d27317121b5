package load

import (
	"math/rand/v2"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// Completion is a request whose prompt is known by the chained hashes of its full blocks of step.BlockTokens tokens, as
// the workloads of a simulation have it, and its answer by its tokens. Each hash becomes the text of one block, so that
// two prompts share the text of their first blocks exactly when they share the hashes. What is left of prompt after the
// full blocks belongs to no block anywhere, and is the same text for all. blocks must have at least prompt/step.BlockTokens hashes, or it
// panics; more are not looked at.
//
// It is a completion because a chat's template would shift the blocks: what the server hashes is this text alone.
func Completion(model, kind string, at time.Duration, blocks []uint64, prompt, answer int) Arrival {
	full := prompt / step.BlockTokens
	var text []byte
	for _, h := range blocks[:full] {
		text = append(text, words16(h)...)
	}
	text = append(text, words16(0)[:(prompt-full*step.BlockTokens)*bytesPerToken]...)
	return Arrival{At: at, Kind: kind, Path: "/v1/completions", Body: encode(model, body{Prompt: string(text), MaxTokens: answer})}
}

// words16 is the text of a block. 64 bytes of words have some 70 bits of choice: two hashes do not meet.
func words16(hash uint64) string { return text(rand.New(rand.NewPCG(hash, 0)), step.BlockTokens) }
