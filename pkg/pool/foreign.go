package pool

import (
	"math"
	"sync/atomic"
	"time"
)

// Others may send to the same replicas: a second weir, or clients that go past it. What they send shows in the gauges
// alone. At a scrape of a replica, with the most sequences of leases that were live there at once since the scrape before,
//
//	foreign = max(0, running + waiting - most)
//	own     = 1 - mean(foreign) / mean(running + waiting)        over the pool's replicas and their last ten scrapes
//
// The most of them and not those of this instant, as the replica counted some time ago: a lease that ended since, was
// moved by a retry, or was left by its client is weir's own. Without scrapes nobody is seen, and weir takes itself to be alone.
//
// Those that run lengthen the steps. Those that wait are ahead of a new request, and in V until they drain, with the tokens
// that a request makes the replica compute on average. They are waiting - weir's own that are not drained, as many as were
// there at the last two samples: a queue that is gone in a second is no reason to go elsewhere (DESIGN.md 4).

const (
	// foreignScrapes of each replica are remembered. Ten are some seconds; 1/own changes slowly beside that.
	foreignScrapes = 10
	// minOwn bounds what follows from 1/own: ten routers.
	minOwn = 0.1
)

// foreign is the moving means over a pool, and what follows from them.
type foreign struct {
	others, all float64
	own         atomic.Uint64 // bits of a float64; 0 before anything was seen
}

// observe takes what a replica, one of n, ran and how much of it others had sent. Nothing at all tells nothing.
func (f *foreign) observe(n int, others, all float64) {
	if all <= 0 {
		return
	}
	gain := 1 / float64(foreignScrapes*n)
	f.others += gain * (others - f.others)
	f.all += gain * (all - f.all)
	f.own.Store(math.Float64bits(max(1-f.others/f.all, minOwn)))
}

// Own is the share of what the pool's replicas run that this router sent: 1 when nobody else is seen, 1/2 beside one
// more router, and 0.1 at least. It may be read outside the critical section.
func (p *Pool) Own() float64 {
	if bits := p.foreign.own.Load(); bits != 0 {
		return math.Float64frombits(bits)
	}
	return 1
}

// meet notes how many requests of others the replica runs, by a sample that tells.
func (r *Replica) meet(s Sample) {
	if s.HasRunning && s.HasWaiting {
		r.ran = s.Running + s.Waiting
		r.foreign = max(r.ran-r.most, 0)
		r.met = s.At
		waiting := min(max(s.Waiting-r.queued, 0), r.foreign)
		r.theirs = min(waiting, r.waited) * r.work.asks.mean
		r.waited = waiting
	}
	r.most = r.sequences
}

// running is the requests that the replica runs and the tokens that they hold on average, those of others with it, which
// are taken to be like weir's own last ones there. Old gauges tell of nobody.
func (r *Replica) running(now time.Time) (requests, context float64) {
	requests, context = r.sequences, r.context
	if r.foreign > 0 && now.Sub(r.met) < Stale {
		requests += r.foreign
		context += r.foreign * r.each
	}
	return requests, context
}
