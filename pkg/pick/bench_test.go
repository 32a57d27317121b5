package pick

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// benchPool is a pool that is busy at now and holds a prompt of 128 KiB everywhere.
func benchPool(n int, now time.Time) (*pool.Pool, *Query) {
	p := newPool(n)
	c := promptChain(1, 512)
	rng := rand.New(rand.NewPCG(1, 1))
	for i, r := range p.Replicas {
		for s := range uint64(3) {
			warm(p, i, promptChain(1000+3*uint64(i)+s, 512))
		}
		warm(p, i, c)
		for range 16 {
			charge(p, now, i, float64(rng.IntN(1000)))
		}
		r.Observe(now, pool.Sample{At: now, KV: rng.Float64(), HasKV: true, Tokens: 1, HasTokens: true})
	}
	return p, query(p, c)
}

var sizes = []int{8, 512}

func TestPickAllocatesNothing(t *testing.T) {
	for _, n := range sizes {
		p, q := benchPool(n, epoch)
		var l pool.Lease
		if a := testing.AllocsPerRun(100, func() {
			q.Lookup(p)
			q.Refresh(p)
			c := Best(epoch, p, q)
			p.Charge(epoch, &l, c.First, c.Load)
			l.Release(epoch, true)
		}); a != 0 {
			t.Errorf("%d replicas: %v allocations", n, a)
		}
	}
}

// BenchmarkPick is what picking adds to the critical section: the argmin and the charge, and the release of
// another request so that load stays.
func BenchmarkPick(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			now := time.Now() // with a monotonic part, as on the wire
			p, q := benchPool(n, now)
			var leases [64]pool.Lease
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(20 * time.Microsecond)
				l := &leases[i%len(leases)]
				l.Release(now, true)
				c := Best(now, p, q)
				p.Charge(now, l, c.First, c.Load)
				i++
			}
		})
	}
}

// BenchmarkMatch is the lookup of a prompt of 128 KiB in every replica's index, each of which holds it whole.
func BenchmarkMatch(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p, q := benchPool(n, time.Now())
			b.ReportAllocs()
			for b.Loop() {
				q.Lookup(p)
			}
			if q.matches[n-1].Blocks != 512 {
				b.Fatalf("matched %d blocks, want 512", q.matches[n-1].Blocks)
			}
		})
	}
}
