package prefix

import (
	"slices"

	"github.com/weirproxy/weir/pkg/chain"
)

// slowIndex is the package comment's LRU as a plain list: the least recently released block is evicted, and a
// request that ends releases its answer first and then its prompt, last block first. A block that no request has told to
// be computed is gone with its last pin.
type slowIndex struct {
	capacity int
	blocks   []slowBlock
	clock    int
	others   float64 // blocks of others' for each new one
	owed     float64
}

type slowBlock struct {
	hash  chain.Hash // 0: a block of an answer
	pins  int
	freed int // the clock when its last pin went
	used  bool
}

func (s *slowIndex) find(h chain.Hash) int {
	return slices.IndexFunc(s.blocks, func(b slowBlock) bool { return b.hash == h })
}

// grow adds a pinned block, evicting one if it must.
func (s *slowIndex) grow(h chain.Hash) bool {
	if !s.fit(s.capacity - 1) {
		return false
	}
	s.blocks = append(s.blocks, slowBlock{hash: h, pins: 1})
	return true
}

// fit evicts until so many blocks are left; false when that is not to be had.
func (s *slowIndex) fit(most int) bool {
	for len(s.blocks) > most {
		victim := -1
		for i, b := range s.blocks {
			if b.pins == 0 && (victim < 0 || b.freed < s.blocks[victim].freed) {
				victim = i
			}
		}
		if victim < 0 {
			return false
		}
		s.blocks = slices.Delete(s.blocks, victim, victim+1)
	}
	return true
}

func (s *slowIndex) pin(c chain.Chain, extra int) (named, anonymous int) {
	held := s.match(c)
	for _, h := range c {
		if i := s.find(h); i >= 0 {
			s.blocks[i].pins++
		} else if !s.grow(h) {
			break
		}
		named++
	}
	for anonymous < extra && s.grow(0) {
		anonymous++
	}
	s.pass(named - min(held, named) + anonymous)
	return named, anonymous
}

// pass has blocks of others come and be freed at once, beside n of one's own.
func (s *slowIndex) pass(n int) {
	const theirs = ^chain.Hash(0)
	for s.owed += float64(n) * s.others; s.owed >= 1; s.owed-- {
		if !s.grow(theirs) {
			s.owed = 0
			return
		}
		b := &s.blocks[len(s.blocks)-1]
		s.clock++
		b.pins, b.freed = 0, s.clock
	}
}

func (s *slowIndex) free(i int, computed bool) {
	b := &s.blocks[i]
	b.used = b.used || computed
	if b.pins--; b.pins > 0 {
		return
	}
	if !b.used {
		s.blocks = slices.Delete(s.blocks, i, i+1)
		return
	}
	s.clock++
	b.freed = s.clock
}

func (s *slowIndex) unpin(c chain.Chain, named, anonymous, computed int) {
	for k := range anonymous {
		s.free(slices.IndexFunc(s.blocks, func(b slowBlock) bool { return b.hash == 0 && b.pins > 0 }), named+k < computed)
	}
	for k, h := range slices.Backward(c[:named]) {
		s.free(s.find(h), k < computed)
	}
	s.fit(s.capacity)
}

func (s *slowIndex) match(c chain.Chain) int {
	for i, h := range c {
		if s.find(h) < 0 {
			return i
		}
	}
	return len(c)
}

func (s *slowIndex) pinned() (n int) {
	for _, b := range s.blocks {
		if b.pins > 0 {
			n++
		}
	}
	return n
}
