package policy

import "time"

// random sends each request anywhere: Envoy's RANDOM policy.
type random struct{ *ledger }

func (p *random) pick(time.Duration, *Call) int { return p.rng.IntN(p.n()) }
