package policy

import (
	"fmt"
	"math"
	"strconv"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/prompt"
)

// told is what weir is told of requests and replicas. The zero value is the truth: what it learns of either is then not at
// work.
type told struct {
	blocks   int // of 16 tokens that a block of 256 bytes has, and so the text's bytes in a token are 16 over that; 0: prompts are counted
	kvTokens int // what the policy says of a replica's memory, which tells nothing of it; 0: it tells
}

// set reads a line of the laboratory's own: bytes_per_token=N, 16 over a whole number, or kv_tokens=N. ok is false for any
// other key.
func (t *told) set(key, value string) (ok bool, err error) {
	x, err := strconv.ParseFloat(value, 64)
	switch key {
	case "bytes_per_token":
		if t.blocks = int(math.Round(step.BlockTokens / x)); err != nil || t.blocks < 1 || t.blocks > step.BlockTokens || math.Abs(step.BlockTokens/x-float64(t.blocks)) > 1e-9 {
			return true, fmt.Errorf("%q is not 16, 8, 16/3 or another of 16 over a whole number", value)
		}
	case "kv_tokens":
		if t.kvTokens = int(x); err != nil || !(x >= 1 && x < 1<<30) {
			return true, fmt.Errorf("%q is no number of tokens", value)
		}
	default:
		return false, nil
	}
	return true, nil
}

// prompt is what weir reads of a call's body.
func (t *told) prompt(c *Call) *prompt.Prompt {
	if t.blocks == 0 {
		return &prompt.Prompt{Chain: c.Chain(), Tokens: c.Req.Prompt, Exact: true, Stream: true}
	}
	p := &prompt.Prompt{Stream: true}
	bytes := c.Req.Prompt * step.BlockTokens / t.blocks
	p.Tokens = (bytes + chain.BytesPerToken - 1) / chain.BytesPerToken
	for i := t.blocks; i <= len(c.Req.Blocks) && i*step.BlockTokens <= c.Req.Prompt; i += t.blocks {
		p.Chain = append(p.Chain, chain.Hash(c.Req.Blocks[i-1]))
	}
	return p
}
