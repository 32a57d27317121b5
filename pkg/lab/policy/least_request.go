package policy

import "time"

// leastRequest takes the replica with the fewest open requests of this router: Envoy's LEAST_REQUEST with
// selection_method FULL_SCAN.
type leastRequest struct{ *ledger }

func (p *leastRequest) pick(time.Duration, *Call) int {
	return p.least(func(i int) float64 { return float64(p.live[i]) })
}
