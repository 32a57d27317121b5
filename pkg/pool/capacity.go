package pool

import "github.com/weirproxy/weir/pkg/chain"

// A replica may hold less than weir's model of its cache: the policy's kv_tokens is too large and the replica does not tell its
// own, or something else takes of its memory. Then weir sends requests after prefixes that are gone, and fewer hits are counted
// than it predicted. So the model's capacity is held at a share of the size:
//
//	share *= max(hits counted / hits predicted, 0.7)    where that is below 0.98
//	share *= 1.05                                       where it is above 0.995, up to 1
//
// once for each capacityAfter requests, which the replica computed since the last time, and at a quarter at least. Where that has
// next to no hits either, the replica does not cache: the share is 0 until it is seen to. With the right size the quotient is
// 0.99 to 1.03: what the last scrapes of a full cache miss is less than what the index leaves out, up to a block of each prompt.

const (
	minCapacity = 0.25 // of the size, of a replica that caches
	// capacityAfter is the requests, and capacityHits the tokens predicted to be cached for each of them, from which the quotient
	// is told: with fewer, what is under way decides it.
	capacityAfter = 40.0
	capacityHits  = 64.0

	shrinkBelow = 0.98
	shrinkLeast = 0.7
	noHits      = 0.02
	growAbove   = 0.995
	growBy      = 1.05
)

// capacity is what is learned of how much a replica's cache holds.
type capacity struct {
	share    float64 // of its size
	hits     versus  // tokens, since share last changed or was looked at
	requests float64
}

// learn takes in the requests that the replica computed between two scrapes, and their hits. It reports whether share changed.
func (c *capacity) learn(requests float64, hits versus) bool {
	c.requests += requests
	c.hits.add(hits)
	told := c.hits.predicted
	if c.share == 0 {
		told = c.hits.actual
	}
	if c.requests < capacityAfter || told < capacityHits*c.requests {
		return false
	}
	was := c.share
	switch off := c.hits.actual / c.hits.predicted; {
	case was == 0:
		c.share = minCapacity
	case was == minCapacity && off < noHits:
		c.share = 0
	case off < shrinkBelow:
		c.share = max(c.share*max(off, shrinkLeast), minCapacity)
	case off > growAbove:
		c.share = min(c.share*growBy, 1)
	}
	c.requests, c.hits = 0, versus{}
	return c.share != was
}

// size makes the index as large as the cache is taken to be, for blocks of so many tokens.
func (r *Replica) size(block float64) {
	r.block = block
	r.Index.Resize(kvBlocks(r.capacity.share * r.kvTokens / block * chain.BlockTokens))
}
