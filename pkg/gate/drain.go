package gate

import (
	"math"
	"time"
)

const (
	// minSamples is the admissions after which a class's rate is believed.
	minSamples = 20
	// rateShare is the part of a class's deadline over which its rate is averaged, and longRate how many times longer the
	// second average is. The first follows a change while those who wait can still be told; the second remembers the
	// rate of before through a wave of other work, or an outage, that may be over before the next deadline.
	rateShare = 0.25
	longRate  = 8
	// minRateTime is the least time of an average, in seconds: a deadline may be of milliseconds.
	minRateTime = 1
)

// drain is how fast a class's queue empties: the tokens admitted from it per second in which somebody of it was held and
// no replica would take any of it (queue.stuck), so that it is the replicas' pace and not that of those who come. Both are
// forgotten with a time constant T of such seconds,
//
//	tokens' = -tokens/T + admitted      seconds' = -seconds/T + 1
//
// so that whatever stands before the class, more urgent work or its own replicas, is in it. Of two averages the faster
// counts: who is refused for a rate that was too low would have been served, who is held for one too high is refused later.
type drain struct {
	clock   float64 // of the queue, up to which it is counted
	average [2]average
	samples int // up to minSamples
}

type average struct{ tokens, seconds float64 }

// advance lets time pass to the queue's clock, with T = over seconds for the first average; busy says whether it counts.
func (d *drain) advance(clock, over float64, busy bool) {
	dt := clock - d.clock
	d.clock = clock
	if !busy || dt <= 0 {
		return
	}
	for i := range d.average {
		a := &d.average[i]
		keep := math.Exp(-dt / over)
		a.tokens *= keep
		a.seconds = a.seconds*keep + over*(1-keep)
		over *= longRate
	}
}

func (d *drain) admitted(tokens float64) {
	for i := range d.average {
		d.average[i].tokens += tokens
	}
	d.samples = min(d.samples+1, minSamples)
}

// known reports whether enough were admitted to tell.
func (d *drain) known() bool { return d.samples == minSamples }

// rate is tokens per second; 0 while it is not known.
func (d *drain) rate() (rate float64) {
	for _, a := range d.average {
		if d.known() && a.seconds > 0 {
			rate = max(rate, a.tokens/a.seconds)
		}
	}
	return rate
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

// pace is what a queue knows of its rates' time.
type pace struct {
	over   float64 // T of the first average, seconds
	stuck  bool    // at the last pass no replica would have taken any of it
	at     time.Time
	clock  float64   // seconds for which it was stuck, up to at
	passed time.Time // when it ended to be stuck
}

// elapse lets the time until now pass for the rates, of one flow if it is given, before the queue changes. What was known of
// them is of another load once it has not been stuck for longer than they are averaged over.
func (q *queue) elapse(now time.Time, f *flow) {
	if !q.stuck && q.drain.average[0].seconds > 0 && now.Sub(q.passed).Seconds() > q.over {
		q.drain = drain{clock: q.clock}
		for _, f := range q.flows {
			f.drain = drain{clock: q.clock}
		}
	}
	if dt := now.Sub(q.at).Seconds(); q.stuck && dt > 0 {
		q.clock += dt
	}
	q.at = now
	q.drain.advance(q.clock, q.over, true)
	if f != nil {
		f.drain.advance(q.clock, q.over, f.tickets.Len() > 0)
	}
}

// setStuck notes whether no replica takes any of it.
func (q *queue) setStuck(now time.Time, is bool) {
	if is == q.stuck {
		return
	}
	q.elapse(now, nil)
	if q.stuck = is; !is {
		q.passed = now
	}
}

// predict is how long a ticket that is not held yet would wait: what goes before it over the rate at which that drains. With
// one flow that is all of an earlier deadline. With more it is its own flow's part of them, and one ticket more, at its own
// flow's rate or, while that is not known, as much of each flow, as they take turns, at the rate of all. ok is false while
// too few were admitted to tell.
func (q *queue) predict(now time.Time, t *Ticket) (wait time.Duration, ok bool) {
	f := q.find(t.Flow)
	q.elapse(now, f)
	first, held := q.expiry.Min()
	if !held {
		return 0, q.drain.known()
	}
	earlier, own := float64(q.due.until(first.Deadline, t.Deadline)), 0.0
	if f != nil {
		own = float64(f.tokens) * earlier / float64(max(q.tokens, 1))
	}
	flows := q.order.Len()
	if flows == 1 && f != nil && f.tickets.Len() > 0 {
		return q.drain.wait(own)
	}
	own += float64(q.tokens) / float64(q.len()) // the turn of each flow before its own next
	if f == nil || !f.drain.known() {
		return q.drain.wait(min(own*float64(flows), float64(q.tokens)))
	}
	return f.drain.wait(own)
}

// retry is when a refused request should come back that may wait for patience: when those who are held have drained, but
// for as many as may stand before it, and those who were told so before it have had their turn. ok is false while too few
// were admitted to tell. most bounds it.
func (q *queue) retry(now time.Time, tokens float64, patience, most time.Duration) (after time.Duration, ok bool) {
	q.elapse(now, nil)
	held, ok := q.drain.wait(float64(q.tokens))
	if !ok {
		return 0, false
	}
	rate := q.drain.rate()
	q.told = max(q.told-rate*max(now.Sub(q.toldAt).Seconds(), 0), 0) + tokens
	q.toldAt = now
	half := most.Seconds() / 2
	turn := q.told / rate
	if turn > 2*half { // more than can be told: over the later half
		q.told = min(q.told, 4*half*rate)
		turn = half + math.Mod(turn, half)
	}
	return min(max(held-patience, 0)+time.Duration(turn*float64(time.Second)), most), true
}
