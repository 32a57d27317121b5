package pool

import (
	"math"
	"time"
)

// Little's law, L = lambda*W, holds of whatever comes and goes: the leases that are live on average are those that end in a
// second times how long each was. Both sides are moving means of one time constant:
//
//	L          of the live leases over time
//	lambda*W   of the seconds of the leases that end, in a second
//
// They differ while traffic grows or shrinks, by the rate at which the ages of the live leases add up, and by chance. A lease
// that is never released stays in L and comes into lambda*W never: a difference that stays is that many leaks.

// littleMemory is the time constant, seconds: several answers, so that one that ends is little.
const littleMemory = 300.0

// little is the two sides on one replica. The means fade once a second, not with each lease.
type little struct {
	at, folded  time.Time // of the last step, and when the means last faded
	live, ended float64   // then
	seconds     float64   // of live leases since
	over        float64   // of those that ended since
}

// step brings the sums up to now, with so many leases live since the last step.
func (l *little) step(now time.Time, leases int) {
	if l.at.IsZero() {
		l.at, l.folded = now, now
	}
	if dt := now.Sub(l.at); dt > 0 {
		l.seconds += dt.Seconds() * float64(leases)
		l.at = now
	}
	if l.at.Sub(l.folded) >= time.Second {
		l.fold()
	}
}

// fold takes the sums into the means.
func (l *little) fold() {
	dt := l.at.Sub(l.folded).Seconds()
	keep := math.Exp(-dt / littleMemory)
	if l.live *= keep; dt > 0 {
		l.live += (1 - keep) * l.seconds / dt // as if evenly spread over the time in between
	}
	l.ended = keep * (l.ended + l.over/littleMemory)
	l.folded, l.seconds, l.over = l.at, 0, 0
}

// end counts a lease that ended after so long, at the last step.
func (l *little) end(life time.Duration) { l.over += max(life.Seconds(), 0) }

// Little is the two sides of Little's law on a replica, as people see them.
type Little struct {
	Live  float64 `json:"live"`  // L
	Ended float64 `json:"ended"` // lambda*W
}

// littleAt is both sides at now.
func (r *Replica) littleAt(now time.Time) Little {
	r.little.step(now, r.leases)
	r.little.fold()
	return Little{r.little.live, r.little.ended}
}
