package prefix

import (
	"math/rand/v2"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
)

// promptChain is a chain of n blocks, as long as a prompt of n*chain.BlockBytes bytes.
func promptChain(seed uint64, n int) chain.Chain {
	c := make(chain.Chain, n)
	rng := rand.New(rand.NewPCG(seed, 9))
	for i := range c {
		c[i] = chain.Hash(rng.Uint64())
	}
	return c
}

// BenchmarkMatch is one replica's answer for a prompt of 128 KiB that it holds whole, in an index as full as a
// cache of 421,000 tokens gets.
func BenchmarkMatch(b *testing.B) {
	x := NewIndex(421_000 / chain.BlockTokens)
	for seed := range uint64(12) {
		c := promptChain(seed, 512)
		x.Unpin(c, x.Pin(c, 0), All)
	}
	for _, c := range []struct {
		name string
		c    chain.Chain
		want int
	}{
		{"whole", promptChain(11, 512), 512},
		{"half", append(promptChain(11, 256), promptChain(99, 256)...), 256},
		{"none", promptChain(99, 512), 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n := x.Match(c.c); n != c.want {
					b.Fatalf("matched %d, want %d", n, c.want)
				}
			}
		})
	}
}

func BenchmarkPopularity(b *testing.B) {
	p := &Popularity{}
	c := promptChain(1, 512) // 128 KiB, everybody's
	b.ReportAllocs()
	for b.Loop() {
		p.Key(c, 8)
	}
}
