package sim

import (
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// ceiling is the hit rate that routing can hope for: of one cache with the memory of all replicas, LRU like theirs, that
// takes requests in the order of arrival. Replicas that hold a text twice have less; routing that is lucky, or that hits
// what a replica computed a moment before, can pass it by a little.
type ceiling struct {
	cache *step.Shared
	known hashes // all blocks that it ever missed, which is all blocks
}

func newCeiling(cfg Config) ceiling {
	return ceiling{cache: step.NewShared(cfg.Replicas * (cfg.Profile.KVTokens / step.BlockTokens))}
}

// add returns the tokens of q's prompt that it holds, and takes in q.
func (c *ceiling) add(q *workload.Request) (tokens int) {
	tokens = c.cache.Serve(q.Blocks, q.Prompt, q.Output)
	for _, h := range q.Blocks[min(tokens/step.BlockTokens, len(q.Blocks)):] {
		c.known.add(h)
	}
	return tokens
}

// hashes is a set of hashes that are not 0: open addressing with linear probing, at most half full. A trace brings ten
// million, in which Go's map takes a fifth of the whole simulation's time.
type hashes struct {
	slots []uint64
	n     int
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
	if h == 0 {
		return
	}
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
