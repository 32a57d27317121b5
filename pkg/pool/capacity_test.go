package pool

import (
	"math"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/prefix"
)

// The share of the size follows the hits, one step for each so many requests, within its bounds, and stays where they are as
// predicted, or nothing tells.
func TestCapacityFollowsHits(t *testing.T) {
	for _, c := range []struct {
		name      string
		predicted float64 // of each request
		actual    float64
		from      float64
		requests  int
		want      float64
	}{
		{"as predicted", 1000, 990, 0.6, 4000, 0.6},
		{"a tenth less", 1000, 900, 1, 40, 0.9},
		{"half is a step of 0.7 at most", 1000, 500, 1, 40, 0.7},
		{"two steps", 1000, 500, 1, 80, 0.49},
		{"the least", 1000, 100, 1, 4000, minCapacity},
		{"no cache", 1000, 0, 1, 4000, 0},
		{"no cache, and hits of chance", 10, 30, 0, 4000, 0},
		{"it caches after all", 10, 300, 0, 40, minCapacity},
		{"more than predicted", 1000, 1020, 0.5, 40, 0.525},
		{"the most", 1000, 1500, 0.5, 4000, 1},
		{"too few requests", 1000, 0, 1, 39, 1},
		{"hardly any hits predicted", 63, 0, 1, 4000, 1},
		{"none at all", 0, 0, 1, 4000, 1},
	} {
		k := capacity{share: c.from}
		for range c.requests {
			k.learn(1, versus{c.predicted, c.actual})
		}
		if math.Abs(k.share-c.want) > 1e-9 {
			t.Errorf("%s: %v of the size, want %v", c.name, k.share, c.want)
		}
	}
}

// A replica of whose predicted hits half are there holds less than its size, in the index and on the page; its KV is as it was.
func TestIndexShrinksWithTheCache(t *testing.T) {
	s := newServer(1)
	s.cached = 0.6
	kv := s.r.kvTokens
	for range 400 {
		s.second([]string{"m"}, []float64{1}, 5)
	}
	if got := s.r.Estimates(at(s.now)).IndexShare; got != minCapacity {
		t.Errorf("%v of the size, want the least", got)
	}
	var c chain.Chain
	for i := range 2000 {
		c = append(c, chain.Hash(i+1))
	}
	s.r.Index.Unpin(c, s.r.Index.Pin(c, 0), prefix.All)
	if got := float64(s.r.Index.Match(c)) * s.r.block / kv; math.Abs(got-minCapacity) > 0.02 || s.r.kvTokens != kv {
		t.Errorf("the index holds %v of the cache; its size is %v, was %v", got, s.r.kvTokens, kv)
	}
}
