package policy

import (
	"math/rand/v2"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/route"
)

// gates are published rules of admission by name, each before weir's own pick, so that they differ from weir in nothing else.
// None is "weir/queue=none", and first come, first served before weir's knee "weir/queue=fifo".
var gates = map[string]func(Env, *weir) Router{
	"static-shed":   func(e Env, r *weir) Router { return newShedding(e, r, shedAbove) },
	"probabilistic": func(e Env, r *weir) Router { return newShedding(e, r, shedByChance) },
	"static-hold":   func(_ Env, r *weir) Router { return newHolding(r) },
}

// bulkClasses are the classes that weir comes with and that others call sheddable.
var bulkClasses = func() map[string]bool {
	all := map[string]bool{}
	for _, c := range route.Default().Classes {
		all[c.Name] = c.Bulk
	}
	return all
}()

// shedding refuses bulk at once, with the odds that a rule gives it, and sends all else at once.
type shedding struct {
	*weir
	load saturation
	odds func(*saturation) float64 // of being refused
	rng  *rand.Rand
}

func newShedding(env Env, r *weir, odds func(*saturation) float64) *shedding {
	return &shedding{r, newSaturation(r), odds, rand.New(rand.NewPCG(env.Seed, 0x54ed))}
}

func (r *shedding) Arrive(now time.Duration, c *Call) bool {
	if bulkClasses[c.Req.Class] && r.rng.Float64() < r.odds(&r.load) {
		c.State, c.Outcome = Refused, route.Shed
		return false
	}
	return r.weir.Arrive(now, c)
}

func (r *shedding) Observe(now time.Duration, slot int, s step.Stats) bool {
	r.load.scrapes[slot] = s
	return r.weir.Observe(now, slot, s)
}
