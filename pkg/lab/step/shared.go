package step

import "sort"

// Shared is one prefix cache without time: each request is over when the next one comes. With the memory of a whole pool
// it is the best that routing by prefix can hope for, as no text has to lie in two places.
//
// It evicts as a replica does, block by block, the least recently used first and of one text the end before the
// beginning, but it keeps runs of blocks that were always used together. As hashes are chained, a block's hash tells of all
// before it: one look at the last hash of a run compares the whole of it.
type Shared struct {
	size  int             // blocks
	used  int             // of them
	named int             // of these, with a hash
	first map[uint64]*run // by the hash of their first block
	order run             // the head of a ring of all runs: its next is the least recently used
	path  []*run          // of the request at hand, for use again
}

// run is blocks that follow each other in a text.
type run struct {
	hashes     []uint64 // nil: blocks that carry none
	n          int      // blocks
	prev, next *run
}

// NewShared returns an empty cache of so many blocks.
func NewShared(blocks int) *Shared {
	s := &Shared{size: blocks, first: map[uint64]*run{}}
	s.order.prev, s.order.next = &s.order, &s.order
	return s
}

// Named is how many blocks with a hash it holds.
func (s *Shared) Named() int { return s.named }

// Serve takes in a request: the hashes of its full blocks, those of the answer included, and its tokens. It returns the
// prompt tokens that the cache held, by vLLM's rule that the last one is computed. A text that is larger than the
// cache leaves its first blocks in it. The cache keeps parts of hashes, which must not change.
func (s *Shared) Serve(hashes []uint64, prompt, output int) (tokens int) {
	hashes = withHash(hashes)
	held := s.take(hashes)
	all := max((prompt+output+BlockTokens-1)/BlockTokens, len(hashes))
	fresh := min(len(hashes)-held, s.size-held)
	rest := min(all-len(hashes), s.size-held-fresh)
	s.evict(s.used + fresh + rest - s.size)
	s.push(&run{n: rest})
	s.push(&run{hashes: hashes[held : held+fresh], n: fresh})
	for i := len(s.path) - 1; i >= 0; i-- {
		s.push(s.path[i])
	}
	return min(held, (prompt-1)/BlockTokens) * BlockTokens
}

// take finds the runs that a text begins with, splits the last one where the text leaves it, and takes them out of the
// order. It returns how many blocks they have, which still count as used.
func (s *Shared) take(hashes []uint64) (held int) {
	s.path = s.path[:0]
	for held < len(hashes) {
		r := s.first[hashes[held]]
		if r == nil {
			break
		}
		rest := hashes[held:]
		k := sort.Search(min(r.n, len(rest)), func(i int) bool { return r.hashes[i] != rest[i] })
		if k < r.n {
			r = s.split(r, k)
		}
		r.prev.next, r.next.prev = r.next, r.prev
		s.path = append(s.path, r)
		held += k
	}
	return held
}

// split makes a run of the first k blocks of r, after it in the order, as the end of a text goes before its beginning.
func (s *Shared) split(r *run, k int) *run {
	front := &run{hashes: r.hashes[:k:k], n: k, prev: r, next: r.next}
	r.next.prev, r.next = front, front
	r.hashes, r.n = r.hashes[k:], r.n-k
	s.first[front.hashes[0]], s.first[r.hashes[0]] = front, r
	return front
}

// evict takes so many blocks out, if it is more than none, the least recently used first.
func (s *Shared) evict(blocks int) {
	for blocks > 0 {
		r := s.order.next
		n := min(blocks, r.n)
		blocks -= n
		s.used -= n
		if r.hashes != nil {
			s.named -= n
		}
		if r.n -= n; r.n > 0 {
			if r.hashes != nil {
				r.hashes = r.hashes[:r.n]
			}
			return
		}
		r.prev.next, r.next.prev = r.next, r.prev
		if r.hashes != nil {
			delete(s.first, r.hashes[0])
		}
	}
}

// push makes a run the most recently used, and takes it in if it is a new one.
func (s *Shared) push(r *run) {
	if r.n == 0 {
		return
	}
	if r.next == nil {
		s.used += r.n
		if r.hashes != nil {
			s.named += r.n
			s.first[r.hashes[0]] = r
		}
	}
	r.prev, r.next = s.order.prev, &s.order
	s.order.prev.next, s.order.prev = r, r
}

// withHash is the blocks before the first that has no hash: it is never found again, nor what follows it.
func withHash(hashes []uint64) []uint64 {
	for i, h := range hashes {
		if h == 0 {
			return hashes[:i]
		}
	}
	return hashes
}
