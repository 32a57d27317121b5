package route

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// bodies is 16 chat requests of this size in all, which share their first half.
func bodies(bytes int) []*Request {
	all := make([]*Request, 16)
	for i := range all {
		half := (bytes - 120) / 8 // tokens
		all[i] = chat(words(1, half), words(100+i, half))
	}
	return all
}

// BenchmarkRoute is a request from its body to its pick, and its end, with the caches warm.
func BenchmarkRoute(b *testing.B) {
	for _, c := range []struct{ bytes, replicas int }{{1 << 10, 8}, {128 << 10, 8}, {1 << 10, 200}, {8 << 10, 200}, {128 << 10, 200}} {
		b.Run(fmt.Sprintf("%dKiB/replicas=%d", c.bytes>>10, c.replicas), func(b *testing.B) {
			r, all := newRouter(c.replicas, Default()), bodies(c.bytes)
			i, now := 0, time.Now()
			b.ReportAllocs()
			for b.Loop() {
				d := r.Route(now, all[i%len(all)])
				if d.State != Picked {
					b.Fatalf("state %v", d.State)
				}
				now = now.Add(time.Millisecond)
				r.Done(now, d, Answered)
				i++
			}
		})
	}
}

// BenchmarkCritical is the critical sections of a request of 128 KiB, admit, argmin and charge, and its end, beside
// 16 live ones on each replica.
func BenchmarkCritical(b *testing.B) {
	for _, n := range []int{8, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r, now := newRouter(n, Default()), time.Now()
			for i, rep := range r.pool.Replicas {
				for j := range 16 {
					r.pool.Charge(now, &pool.Lease{}, rep, pool.Load{Prompt: 1000, Uncached: float64((i*7 + j*13) % 1000), Output: 256})
				}
				rep.Observe(now, pool.Sample{At: now, KV: float64(i%10) / 10, HasKV: true, Tokens: 1, HasTokens: true})
			}
			d := &Decision{}
			q := ask(1, 32<<10)
			r.parse(d, q)
			d.classify(now, r, q)
			r.locate(now, d, q.Session)
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(20 * time.Microsecond)
				d.ended = false
				d.classify(now, r, q)
				if r.offer(now, d); d.State != Picked {
					b.Fatalf("state %v", d.State)
				}
				r.finish(now, d, Answered)
			}
		})
	}
}

// BenchmarkPass is the critical section of a pass beside 64 held requests of a full pool: one look at each replica tells
// that nobody can go.
func BenchmarkPass(b *testing.B) {
	for _, n := range []int{8, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r, now := newRouter(n, Default()), epoch
			fill(r, now)
			for i := range 64 {
				if d := r.Route(now, ask(i, 1000)); d.Ready() == nil {
					b.Fatal("not held")
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if d, _, _ := r.releaseOne(now); d != nil {
					b.Fatal("released")
				}
			}
		})
	}
}

// What one request may allocate from its body to its end: the Decision, its matches, the chain as it grows, the
// model's name. With room for two more.
func TestRouteAllocations(t *testing.T) {
	for _, c := range []struct {
		bytes int
		most  float64
	}{{1 << 10, 7}, {128 << 10, 14}} {
		r, all := newRouter(8, Default()), bodies(c.bytes)
		i := 0
		if n := testing.AllocsPerRun(200, func() {
			d := r.Route(at(float64(i)), all[i%len(all)])
			r.Done(at(float64(i)+0.1), d, Answered)
			i++
		}); n > c.most {
			t.Errorf("%d bytes: %v allocations, at most %v", c.bytes, n, c.most)
		}
	}
}
