package policy

import "time"

// lmetric takes the least product of the prompt tokens that a replica would have to compute and the requests it would
// have: Zhang et al., "LMetric: Simple is Better - Multiplication May Be All You Need for LLM Request Scheduling"
// (arXiv 2603.15202, 2026). The new request counts in both, so that neither is zero.
type lmetric struct{ *ledger }

func (p *lmetric) pick(_ time.Duration, c *Call) int {
	return p.least(func(i int) float64 { return p.uncached(c, i) * float64(p.live[i]+1) })
}
