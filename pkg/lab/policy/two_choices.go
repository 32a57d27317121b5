package policy

import "time"

// twoChoices takes the one with fewer open requests of two different replicas drawn at random: Mitzenmacher, "The Power of
// Two Choices in Randomized Load Balancing" (2001), and Envoy's LEAST_REQUEST as it comes.
type twoChoices struct{ *ledger }

func (p *twoChoices) pick(time.Duration, *Call) int {
	if p.n() == 1 {
		return 0
	}
	a, b := p.rng.IntN(p.n()), p.rng.IntN(p.n()-1)
	if b >= a {
		b++
	}
	if p.live[b] < p.live[a] {
		return b
	}
	return a
}
