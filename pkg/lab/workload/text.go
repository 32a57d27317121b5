package workload

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// text is a prompt under construction. The zero value is the empty text.
type text struct {
	blocks []uint64 // of the full blocks
	tokens int
	open   uint64 // hash of everything so far
}

// add appends n tokens of the piece of that name, from the piece's start.
func (t *text) add(piece uint64, n int) {
	for from := 0; from < n; {
		k := min(n-from, step.BlockTokens-t.tokens%step.BlockTokens)
		t.open = Chain(t.open, piece, uint64(from), uint64(k))
		t.tokens += k
		from += k
		if t.tokens%step.BlockTokens == 0 {
			t.blocks = append(t.blocks, t.open)
		}
	}
}

// with returns the text with n tokens of a piece after it, and leaves t as it is.
func (t text) with(piece uint64, n int) text {
	blocks := make([]uint64, len(t.blocks), len(t.blocks)+n/step.BlockTokens+1)
	copy(blocks, t.blocks)
	t.blocks = blocks
	t.add(piece, n)
	return t
}

// Chain returns the hash that follows prev for that many tokens of a piece, from one of its tokens on. It
// is never 0, which the step model takes for no hash.
func Chain(prev, piece, from, tokens uint64) uint64 {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[0:], prev)
	binary.LittleEndian.PutUint64(b[8:], piece)
	binary.LittleEndian.PutUint64(b[16:], from)
	binary.LittleEndian.PutUint64(b[24:], tokens)
	return max(1, xxhash.Sum64(b[:]))
}
