package pool

import (
	"math"
	"time"
)

// What interactive requests feel of bulk is how many replicas hold bulk that is not yet prefilled: every one of
// those makes a request that lands there wait. A share of the knee per replica says too little (DESIGN.md 4).

const (
	// bulkMemory is the time constant of the interactive load, seconds; bulkSpare the least load at which
	// interactive requests count as present, and bulkWeight the replicas kept free of bulk for each unit of it.
	// Simulated: 4 gives interactive p99 1.14x at 80 % of the leftover, 2 gives 1.35x at 90 %.
	bulkMemory = 10.0
	bulkSpare  = 0.005
	bulkWeight = 4
)

// load is the moving mean, over bulkMemory, of the interactive prefill seconds that arrive in a second.
type load struct {
	rate float64
	at   time.Time
}

// read is the mean at now.
func (l *load) read(now time.Time) float64 {
	if l.rate == 0 {
		return 0
	}
	return l.rate * math.Exp(-max(now.Sub(l.at).Seconds(), 0)/bulkMemory)
}

// add counts seconds of prefill at now.
func (l *load) add(now time.Time, seconds float64) {
	l.rate = l.read(now) + seconds/bulkMemory
	if now.After(l.at) {
		l.at = now
	}
}

// BulkReplicas is k: how many replicas may hold bulk that is not yet prefilled, at least one, and all while no
// interactive request comes. With N replicas and the interactive prefill load rhoI of each:
//
//	k = clamp(floor(N - 1 - 4*rhoI*N), 1, N-1);  k = N when rhoI < 0.005
//
// Others that send to the pool are taken to send as much interactive work for each request as this router does.
func (p *Pool) BulkReplicas(now time.Time) int {
	n := float64(len(p.Replicas))
	rate := p.interactive.read(now) / p.Own() // rhoI*N
	if rate < bulkSpare*n {
		return len(p.Replicas)
	}
	return int(max(min(math.Floor(n-1-bulkWeight*rate), n-1), 1))
}

// BulkGrows returns how long from now BulkReplicas takes to pass n, less than N, if no interactive request comes.
func (p *Pool) BulkGrows(now time.Time, n int) time.Duration {
	if p.BulkReplicas(now) > n {
		return 0
	}
	all := float64(len(p.Replicas))
	target := max((all-2-float64(n))/bulkWeight, bulkSpare*all) * p.Own()
	return time.Duration(bulkMemory * math.Log(p.interactive.read(now)/target) * float64(time.Second))
}

// BulkElsewhere is how many replicas but r hold bulk that is not yet prefilled.
func (p *Pool) BulkElsewhere(now time.Time, r *Replica) (n int) {
	for _, other := range p.Replicas {
		if other != r && other.bulk > 0 {
			if other.advance(now); other.bulk > 0 {
				n++
			}
		}
	}
	return n
}

// HoldsBulk reports whether r held bulk that was not yet prefilled at its last event; BulkElsewhere brings it up to now.
func (r *Replica) HoldsBulk() bool { return r.bulk > 0 }

// BulkDrains returns how long from now until the first replica but r has prefilled its bulk. ok is false when
// there is none, or none that shows progress.
func (p *Pool) BulkDrains(now time.Time, r *Replica) (d time.Duration, ok bool) {
	for _, other := range p.Replicas {
		if other == r || other.bulk == 0 {
			continue
		}
		other.advance(now)
		if wait := time.Duration(other.bulkAhead() * other.prefill * float64(time.Second)); other.bulk > 0 &&
			(!ok || wait < d) && !now.Add(wait).After(other.patience) {
			d, ok = wait, true
		}
	}
	return d, ok
}

// bulkAhead is the tokens until the last bulk in the backlog is prefilled.
func (r *Replica) bulkAhead() float64 {
	ahead := r.backlog
	for l := r.newest; l != nil && !l.Load.Bulk; l = l.older {
		ahead -= l.left
	}
	return ahead
}
