package gate

import (
	"math"
	"time"
)

const (
	// minSamples is the admissions after which a class's rate is believed.
	minSamples = 20
	// rateShare is the part of a class's deadline over which its rate is averaged: long enough that a wave of other
	// work does not look like the end, short enough to see a change while those who wait can still be told.
	rateShare = 0.25
)

// drain is how fast a class's queue empties: the tokens admitted from it per second in which anybody of it was held, both
// forgotten with the time constant tau of such seconds,
//
//	tokens' = -tokens/tau + admitted      seconds' = -seconds/tau + 1
//
// so that whatever stands before the class, more urgent work or its own replicas, is in it.
type drain struct {
	tau     float64 // seconds
	at      time.Time
	tokens  float64
	seconds float64
	samples int // up to minSamples
}

// advance lets the time until now pass; busy says that somebody was held in it.
func (d *drain) advance(now time.Time, busy bool) {
	dt := now.Sub(d.at).Seconds()
	if dt <= 0 {
		return
	}
	d.at = now
	if !busy {
		return
	}
	keep := math.Exp(-dt / d.tau)
	d.tokens *= keep
	d.seconds = d.seconds*keep + d.tau*(1-keep)
}

func (d *drain) admitted(tokens float64) {
	d.tokens += tokens
	d.samples = min(d.samples+1, minSamples)
}

// known reports whether enough were admitted to tell.
func (d *drain) known() bool { return d.samples == minSamples }

// rate is tokens per second; 0 while it is not known.
func (d *drain) rate() float64 {
	if !d.known() || d.seconds == 0 {
		return 0
	}
	return d.tokens / d.seconds
}

// wait is how long so many tokens take to drain; ok is false while it is not known.
func (d *drain) wait(tokens float64) (wait time.Duration, ok bool) {
	rate := d.rate()
	if rate == 0 || tokens <= 0 {
		return 0, rate > 0
	}
	return time.Duration(min(tokens/rate, never.Seconds()) * float64(time.Second)), true
}

// never is more than any deadline.
const never = 24 * time.Hour

// pass lets the time until now pass for the rates, before the queue changes.
func (q *queue) pass(now time.Time, f *flow) {
	q.drain.advance(now, q.len() > 0)
	f.drain.advance(now, f.tickets.Len() > 0)
}

// predict is how long a ticket that is not held yet would wait: what goes before it over the rate at which that drains. With
// one flow that is all of an earlier deadline. With more it is its own flow's part of them at its own flow's rate or,
// while that is not known, as much of each flow, as they take turns, at the rate of all. ok is false while too few were
// admitted to tell.
func (q *queue) predict(now time.Time, t *Ticket) (wait time.Duration, ok bool) {
	q.drain.advance(now, q.len() > 0)
	first, held := q.expiry.Min()
	if !held {
		return 0, q.drain.known()
	}
	earlier, own := float64(q.due.until(first.Deadline, t.Deadline)), 0.0
	f := q.find(t.Flow)
	if f != nil {
		own = float64(f.tokens) * earlier / float64(max(q.tokens, 1))
	}
	if n := q.order.Len(); n == 1 || f == nil || !f.drain.known() {
		return q.drain.wait(min(own*float64(n), float64(q.tokens)))
	}
	f.drain.advance(now, f.tickets.Len() > 0)
	return f.drain.wait(own)
}

// wait is how long all that is held takes to drain; ok is false while too few were admitted to tell.
func (q *queue) wait(now time.Time) (wait time.Duration, ok bool) {
	q.drain.advance(now, q.len() > 0)
	return q.drain.wait(float64(q.tokens))
}
