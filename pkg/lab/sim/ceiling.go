package sim

import (
	"math"

	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// ceiling is the hit rate that routing can hope for: of one cache with the memory of all replicas, LRU like theirs, that
// takes requests in the order of arrival, each whole. Replicas that hold a text twice have less. A little more is possible,
// as an answer takes its room while it grows and not from the arrival on.
type ceiling struct {
	cache   *step.Shared
	endless *step.Shared // holds every different block
}

func newCeiling(cfg Config) ceiling {
	blocks := 0 // not those of KVTokens: what is left of a replica's tokens after its whole blocks holds nothing
	for i := range cfg.Replicas {
		blocks += cfg.profile(i).KVTokens / step.BlockTokens
	}
	return ceiling{step.NewShared(blocks), step.NewShared(math.MaxInt)}
}

// add takes in q and returns the tokens of its prompt that the cache holds.
func (c *ceiling) add(q *workload.Request) (tokens int) {
	c.endless.Serve(q.Blocks, len(q.Blocks)*step.BlockTokens, 0)
	return c.cache.Serve(q.Blocks, q.Prompt, q.Output)
}

// distinct is the tokens in different blocks so far.
func (c *ceiling) distinct() int64 { return int64(c.endless.Named()) * step.BlockTokens }
