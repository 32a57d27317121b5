package sim

import (
	"slices"
	"sort"

	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// ceiling is a cache that all replicas share, without end, and that holds a request's blocks from its arrival on: what it
// hits is the most that any routing could.
type ceiling struct{ known hashes }

// add returns the tokens of q's prompt that it holds, by vLLM's rule that the last token is computed, and takes in q.
func (c *ceiling) add(q *workload.Request) (tokens int) {
	blocks := q.Blocks
	if i := slices.Index(blocks, 0); i >= 0 {
		blocks = blocks[:i] // a block without a hash is never found again, nor what follows it
	}
	// Hashes are chained: what is held of a prompt are its first blocks.
	n := sort.Search(len(blocks), func(i int) bool { return !c.known.has(blocks[i]) })
	for _, h := range blocks[n:] {
		c.known.add(h)
	}
	return min(n, (q.Prompt-1)/step.BlockTokens) * step.BlockTokens
}

// hashes is a set of hashes that are not 0: open addressing with linear probing, at most half full. A trace brings ten
// million, in which Go's map takes a fifth of the whole simulation's time.
type hashes struct {
	slots []uint64
	n     int
}

func (s *hashes) has(h uint64) bool {
	return s.n > 0 && s.slots[s.at(h)] == h
}

// at is where h stands, or the empty slot where it would. Hashes are spread already.
func (s *hashes) at(h uint64) int {
	i := int(h) & (len(s.slots) - 1)
	for s.slots[i] != 0 && s.slots[i] != h {
		i = (i + 1) & (len(s.slots) - 1)
	}
	return i
}

func (s *hashes) add(h uint64) {
	if 2*s.n >= len(s.slots) {
		old := s.slots
		s.slots = make([]uint64, max(2*len(old), 1024))
		for _, o := range old {
			if o != 0 {
				s.slots[s.at(o)] = o
			}
		}
	}
	if i := s.at(h); s.slots[i] == 0 {
		s.slots[i] = h
		s.n++
	}
}
