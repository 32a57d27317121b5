package pool

import (
	"math"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/prefix"
)

// A replica's KV has the size that it tells itself, from then on, and until it tells another; what is cached there beyond it is
// taken for evicted.
func TestReplicaTellsItsSize(t *testing.T) {
	p := New("p", []string{"10.0.0.1:8000", "10.0.0.2:8000"}, plain) // 64,000 tokens
	r := p.Replicas[0]
	c := make(chain.Chain, 500)
	for i := range c {
		c[i] = chain.Hash(i + 1)
	}
	r.Index.Unpin(c, r.Index.Pin(c, 0), prefix.All)
	for _, s := range []struct {
		tells  float64
		tokens float64
		held   int
	}{{64_000, 64_000, 500}, {16_010, 16_000, 250}, {32_000, 32_000, 250}, {1, 64, 1}, {math.Inf(1), 1 << 30, 1}} {
		p.Observe(at(1), r, Sample{At: at(1), KVTokens: s.tells, HasSize: true})
		p.Observe(at(2), r, Sample{At: at(2)}) // a page without it changes nothing
		if got := 1 / r.Share(1); math.Abs(got-s.tokens) > 1e-6*s.tokens || r.Index.Match(c) != s.held {
			t.Errorf("told %v: %v tokens, %d of 500 blocks held; want %v and %d", s.tells, got, r.Index.Match(c), s.tokens, s.held)
		}
	}
	if got := 1 / p.Replicas[1].Share(1); math.Abs(got-64_000) > 1e-6 {
		t.Errorf("the other replica has %v tokens", got)
	}
}
