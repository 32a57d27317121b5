package policy

import "time"

// weighted sums three scores of 0 to 1 and takes the highest: the queue 2, KV 2, the prefix 3, as the llm-d router and
// the Gateway API inference extension ship them. Queue and KV are the last scrape's; the prefix is the share of the
// prompt's blocks that the replica holds. What was sent since the scrape does not count.
type weighted struct{ *ledger }

const (
	queueWeight  = 2
	kvWeight     = 2
	prefixWeight = 3
)

func (p *weighted) pick(_ time.Duration, c *Call) int {
	low, high := p.scrape[0].Waiting, p.scrape[0].Waiting
	for i := range p.scrape {
		low, high = min(low, p.scrape[i].Waiting), max(high, p.scrape[i].Waiting)
	}
	return p.least(func(i int) float64 {
		queue, kv, held := 1.0, 1.0, 0.0
		if high > low {
			queue = float64(high-p.scrape[i].Waiting) / float64(high-low)
		}
		if p.scrape[i].KVBlocks > 0 {
			kv -= p.scrape[i].KVUsage()
		}
		if blocks := len(c.Chain()); blocks > 0 {
			held = float64(p.matched(c, i)) / float64(blocks)
		}
		return -(queueWeight*queue + kvWeight*kv + prefixWeight*held)
	})
}
