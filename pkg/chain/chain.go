// Package chain cuts a prompt into prefix blocks and chains their hashes.
//
// A prefix block is a fixed number of tokens' worth of prompt bytes. The hash of block i is
//
//	h_i = xxhash64(block_i, seed h_{i-1}),   h_{-1} = the caller's seed
//
// so that one hash names a block together with everything before it: two prompts share their first n
// blocks exactly when the first n hashes of their chains are equal. A trailing block that is not full has
// no hash, as a model server reuses only full blocks.
package chain

import "github.com/cespare/xxhash/v2"

// BlockTokens is the tokens in a prefix block, at BytesPerToken. vLLM's own block is 16 tokens; four of them to one of ours
// loses at most 63 tokens of a match and quarters the work of matching and the size of the index.
const BlockTokens = 64

// BytesPerToken is the mean bytes of UTF-8 prompt text in one token. About 4 is what byte-pair encodings
// reach on English text; package pool learns how far a model's texts are off it.
const BytesPerToken = 4

// BlockBytes is the prompt bytes in a prefix block.
const BlockBytes = BlockTokens * BytesPerToken

// Hash names a prefix block and all blocks before it.
type Hash uint64

// Chain is the hashes of a prompt's full blocks, first block first.
type Chain []Hash

// Hasher turns a byte stream into a Chain. The zero value is not ready: call Reset first. Not safe for
// concurrent use.
type Hasher struct {
	digest xxhash.Digest
	fill   int // bytes in the open block
	chain  Chain
}

// Reset starts a chain from seed, appending to dst[:0] so that its memory is used again.
func (h *Hasher) Reset(seed uint64, dst Chain) {
	h.digest.ResetWithSeed(seed)
	h.fill, h.chain = 0, dst[:0]
}

// Write adds p to the stream. How a stream is cut into writes does not change its chain.
func (h *Hasher) Write(p []byte) {
	for len(p) > 0 {
		n := min(len(p), BlockBytes-h.fill)
		h.digest.Write(p[:n]) // never fails (xxhash.Digest)
		h.fill += n
		p = p[n:]
		if h.fill == BlockBytes {
			sum := h.digest.Sum64()
			h.chain = append(h.chain, Hash(sum))
			h.digest.ResetWithSeed(sum)
			h.fill = 0
		}
	}
}

// Chain returns the hashes of the full blocks written since Reset.
func (h *Hasher) Chain() Chain { return h.chain }

// Seed derives a chain's seed from what partitions a model server's cache: the model (or adapter) name and
// the request's cache_salt. Equal parts give equal seeds; the parts cannot run into one another.
func Seed(parts ...string) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(0)
	for _, p := range parts {
		n := len(p)
		d.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
		d.WriteString(p)
	}
	return d.Sum64()
}
