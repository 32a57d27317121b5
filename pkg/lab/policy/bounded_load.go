package policy

import (
	"math"
	"time"
)

// boundedLoad is prefixHash with a bound: a replica takes at most 1.25 times its share of the open requests, and what
// is over goes to the next on the ring. Mirrokni, Thorup and Zadimoghaddam, "Consistent Hashing with Bounded Loads"
// (2016); 1.25 is the factor that routers of prompts ship with.
type boundedLoad struct{ *ledger }

const loadFactor = 1.25

func (p *boundedLoad) pick(_ time.Duration, c *Call) int {
	bound := int(math.Ceil(loadFactor * float64(p.total+1) / float64(p.n())))
	return p.home(c, func(i int) bool { return p.live[i] < bound })
}
