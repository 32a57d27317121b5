package policy

import (
	"time"

	"github.com/weirproxy/weir/pkg/chain"
)

// sticky stays with a warm replica until that is saturated: of those that hold stickyWarm of the prompt it takes the
// one with the least prefill pending, unless that is stickyOver seconds of prefill more than the coldest has; else the
// one with the least pending of all. The shape of the cache-aware routers of SGLang and vLLM: a threshold for the
// cache, a threshold for balance.
type sticky struct{ *ledger }

const (
	stickyWarm = 0.8
	stickyOver = 2.0
)

func (p *sticky) pick(_ time.Duration, c *Call) int {
	cold := p.least(func(i int) float64 { return p.pending[i] })
	warm := -1
	for i := range p.n() {
		if float64(p.matched(c, i)*chain.BlockTokens) < stickyWarm*float64(c.Req.Prompt) {
			continue
		}
		if warm < 0 || p.pending[i] < p.pending[warm] {
			warm = i
		}
	}
	if warm < 0 || (p.pending[warm]-p.pending[cold])*p.env.Profile.PerPrefill.Seconds() > stickyOver {
		return cold
	}
	return warm
}
