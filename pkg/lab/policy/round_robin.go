package policy

import "time"

// roundRobin takes turns: Envoy's default, ROUND_ROBIN.
type roundRobin struct {
	*ledger
	last int
}

func (p *roundRobin) pick(time.Duration, *Call) int {
	p.last = (p.last + 1) % p.n()
	return p.last
}
