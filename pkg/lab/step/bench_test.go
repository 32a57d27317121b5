package step

import (
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkRequests is the cost of one request's whole life in virtual time, by shape of traffic. A
// simulator of 20,000 requests per second has 50 us for each.
func BenchmarkRequests(b *testing.B) {
	for _, c := range []struct {
		name           string
		profile        string
		groups, shared int // prompts that share their first tokens
		own, output    int
		rate           float64 // requests per second
	}{
		{"b2b", "32B", 19, 6000, 1200, 1000, 1.5},
		{"rag", "8B", 30, 8000, 1000, 250, 6},
		{"conversation", "8B", 1000, 500, 500, 200, 20},
		{"saturated", "32B", 150, 6000, 1200, 1000, 4},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := mustNew(b, mustLookup(b, c.profile))
			rng := rand.New(rand.NewPCG(1, 2))
			texts := make([][]uint64, c.groups)
			for i := range texts {
				texts[i] = hashes(uint64(i+1), (c.shared+c.own)/BlockTokens)
			}
			now := time.Duration(0)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				now += time.Duration(rng.ExpFloat64() / c.rate * float64(time.Second))
				for next, ok := r.Next(); ok && next < now; next, ok = r.Next() {
					r.Advance(next)
				}
				text := append([]uint64(nil), texts[rng.IntN(c.groups)]...)
				for j := c.shared / BlockTokens; j < len(text); j++ {
					text[j] = uint64(i+1)<<40 | uint64(j)
				}
				submit(b, r, now, &Seq{Hashes: text, Prompt: c.shared + c.own, Output: c.output})
			}
			st := r.Stats()
			b.ReportMetric(float64(st.Hits)/float64(max(1, st.Queries)), "hit")
			b.ReportMetric(float64(st.Waiting), "waiting")
		})
	}
}
