package step

// Shared is one prefix cache without time: each request is over when the next one comes. With the memory of a whole pool
// it is the best that routing by prefix can hope for, as no text has to lie in two places.
type Shared struct {
	cache *cache
	ids   []int32
}

// NewShared returns an empty cache of so many blocks, at least one.
func NewShared(blocks int) *Shared { return &Shared{cache: newCache(max(blocks, 1))} }

// Serve takes in a request: the hashes of its full blocks, those of the answer included, and its tokens. It returns the
// prompt tokens that the cache held, by vLLM's rule that the last one is computed. A text that is larger than the
// cache leaves its first blocks in it.
func (s *Shared) Serve(hashes []uint64, prompt, output int) (tokens int) {
	hashes = named(hashes)
	s.ids, _ = s.cache.match(hashes, s.ids[:0])
	held := len(s.ids)
	s.cache.hold(s.ids)
	all := (prompt + output + BlockTokens - 1) / BlockTokens
	s.ids = s.cache.take(min(max(all, len(hashes))-held, s.cache.free), s.ids)
	for i := held; i < min(len(hashes), len(s.ids)); i++ {
		s.cache.name(s.ids[i], hashes[i])
	}
	s.cache.release(s.ids)
	return min(held, (prompt-1)/BlockTokens) * BlockTokens
}

// named is the blocks before the first that has no hash: it is never found again, nor what follows it.
func named(hashes []uint64) []uint64 {
	for i, h := range hashes {
		if h == 0 {
			return hashes[:i]
		}
	}
	return hashes
}
