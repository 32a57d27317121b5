package pool

import (
	"math"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/knee"
)

// What interactive requests feel of bulk is how many replicas hold bulk that is not yet prefilled: they keep off those, and
// wait for each other on the rest. A share of the knee per replica says too little (DESIGN.md 4).
//
// An interactive request takes a replica for u*P + D seconds, its tokens and a step. While bulk comes, its lease is charged D as
// tokens, D/P, beside its own, unless another waits there already, whose step it shares: u*P alone drains before the replica is
// through, so that it looks free, and with few to choose from the next one waits there.

const (
	// bulkMemory is the time constant of the loads, seconds: shorter than people's habits change, longer than chance (30 is
	// better under bursts, and keeps bulk off for longer after them, DESIGN.md 4). bulkSpare is the least load of a replica,
	// half a percent of its time, at which requests of a sort count as present.
	bulkMemory = 10.0
	bulkSpare  = 0.005
	// bulkTail is the share of interactive requests that bulk may let wait longer for each other than one of them
	// takes: p99 is what is promised of them, and they wait for one other without bulk, to find their prefix.
	bulkTail = 0.01
)

// load is the moving mean, over bulkMemory, of the seconds of a replica that arrive in a second.
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

// add counts seconds of a replica at now.
func (l *load) add(now time.Time, seconds float64) {
	l.rate = l.read(now) + seconds/bulkMemory
	if now.After(l.at) {
		l.at = now
	}
}

// maxLoads is the most interactive load that so many of n replicas take, all but one at most, by their number.
func maxLoads(n int) []float64 {
	all := make([]float64, n)
	for c := 1; c < n; c++ {
		all[c] = knee.MaxLoad(c, bulkTail)
	}
	return all
}

// BulkReplicas is k: how many replicas may hold bulk that is not yet prefilled, at least one, and all while no
// interactive request comes. With N replicas and an interactive load of rhoI on each:
//
//	k = max(N - c, 1),  c >= 1 the least with ErlangC(c, rhoI*N) * exp(-(c - rhoI*N)) <= 0.01;  k = N when rhoI < 0.005
//
// The c that are left to interactive requests serve them as M/M/c, where at most one of a hundred waits longer than one of
// them takes (knee.MaxLoad). Others that send to the pool are taken to send as much interactive work for each request as
// this router does.
func (p *Pool) BulkReplicas(now time.Time) int {
	n := len(p.Replicas)
	load := p.interactive.read(now) / p.bulkOwn()
	if load < bulkSpare*float64(n) {
		return n
	}
	left, _ := slices.BinarySearch(p.maxLoads, load)
	return max(n-max(left, 1), 1)
}

// BulkGrows returns how long from now BulkReplicas takes to pass n, less than N, if no interactive request comes.
func (p *Pool) BulkGrows(now time.Time, n int) time.Duration {
	if p.BulkReplicas(now) > n {
		return 0
	}
	all := len(p.Replicas)
	target := max(p.maxLoads[all-1-n], bulkSpare*float64(all)) * p.bulkOwn()
	return time.Duration(bulkMemory * math.Log(p.interactive.read(now)/target) * float64(time.Second))
}

// bulkComes reports whether bulk counts as present.
func (p *Pool) bulkComes(now time.Time) bool {
	return p.bulk.read(now) >= bulkSpare*float64(len(p.Replicas))
}

// BulkElsewhere is how many replicas but r hold bulk that is not yet prefilled.
func (p *Pool) BulkElsewhere(now time.Time, r *Replica) (n int) {
	for _, other := range p.Replicas {
		if other != r && other.bulk > 0 && !other.health.failing() { // what a replica that fails holds makes nobody wait
			if other.advance(now); other.bulk > 0 {
				n++
			}
		}
	}
	return n
}

// holdsBulk reports whether of r's bulk something is not yet prefilled when that much of its backlog has drained.
func (r *Replica) holdsBulk(drained float64) bool {
	return r.bulk > 0 && r.bulkAhead() > drained
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
		if wait := time.Duration((other.theirs + other.bulkAhead()) * other.prefill * float64(time.Second)); other.bulk > 0 &&
			(!ok || wait < d) && !now.Add(wait).After(other.patience) {
			d, ok = wait, true
		}
	}
	return d, ok
}

// ownStep is the tokens of the step that a request takes which comes at now; 0 if one waits whose step it shares. The oldest
// of the backlog is being computed.
func (r *Replica) ownStep(now time.Time) float64 {
	r.advance(now)
	if r.oldest != r.newest {
		return 0
	}
	return r.decode / r.prefill
}

// bulkAhead is the tokens until the last bulk in the backlog is prefilled.
func (r *Replica) bulkAhead() float64 {
	ahead := r.backlog
	for l := r.newest; l != nil && !l.Load.Bulk; l = l.older {
		ahead -= l.left
	}
	return ahead
}
