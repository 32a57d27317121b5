package policy

import "time"

// leastPending takes the replica with the fewest prompt tokens whose answers have not begun: join the shortest queue,
// measured in work instead of requests. A token counts as pending that a cache model of the replica does not hold;
// what the new request itself would find there plays no part.
type leastPending struct{ *ledger }

func (p *leastPending) pick(_ time.Duration, c *Call) int {
	p.matched(c, 0) // the ledger counts uncached tokens
	return p.least(func(i int) float64 { return p.pending[i] })
}
