package gate

import (
	"math"
	"time"
)

// past is what was admitted of a class or a flow while somebody of it was held that no replica would have taken, by a clock
// that runs only then.
type past struct {
	clock  float64   // seconds
	since  time.Time // of the clock
	at     []float64 // the clock at each admission
	tokens []float64

	stuck  bool             // of a class
	passed time.Time        // when it ended to be
	flows  map[string]*past // those that the queue knows
}

func (p *past) admitted(tokens float64) {
	p.at, p.tokens = append(p.at, p.clock), append(p.tokens, tokens)
}

func (p *past) tick(now time.Time, busy bool) {
	if busy {
		p.clock += now.Sub(p.since).Seconds()
	}
	p.since = now
}

// tick brings the clocks of a class up to now. Called before its queue changes.
func (o *oracle) tick(class int) {
	with := map[string]bool{}
	for _, t := range o.queues[class].tickets {
		with[t.Flow] = true
	}
	p := o.past[class]
	if !p.stuck && o.now.Sub(p.passed).Seconds() > o.over(class) { // nothing is known any more
		p.at, p.tokens, p.clock = nil, nil, 0
		for _, f := range p.flows {
			f.at, f.tokens, f.clock = nil, nil, 0
		}
	}
	p.tick(o.now, p.stuck)
	for flow, f := range p.flows {
		f.tick(o.now, p.stuck && with[flow])
	}
}

// mark notes whether a class is stuck.
func (o *oracle) mark(class int, stuck bool) {
	p := o.past[class]
	if p.stuck == stuck {
		return
	}
	o.tick(class)
	if p.stuck = stuck; !stuck {
		p.passed = o.now
	}
}

// open says whether any replica is below its knee, and whether any would take the smallest bulk.
func (o *oracle) open() (any, bulk bool) {
	for _, r := range o.pool.Replicas {
		v := r.View(o.now)
		if v.Wait >= 0.5 || v.Used >= 1 || !v.Free {
			continue
		}
		n, k := o.elsewhere(r)
		any, bulk = true, bulk || v.Wait < 0.125 && v.KV <= 0.7 && n < k
	}
	return any, bulk
}

// over is the time constant of a class's first average, in seconds.
func (o *oracle) over(class int) float64 { return max(o.classes[class].Deadline.Seconds()/4, 1) }

// rate is tokens per second of that clock, what is long past counting less and less, by the faster of two averages; ok is
// false for too few.
func (p *past) rate(over float64) (rate float64, ok bool) {
	for _, tau := range []float64{over, 8 * over} {
		sum := 0.0
		for i, at := range p.at {
			sum += p.tokens[i] * math.Exp((at-p.clock)/tau)
		}
		rate = max(rate, sum/(tau*(1-math.Exp(-p.clock/tau))))
	}
	return rate, len(p.at) >= 20
}

// hopeless reports whether what goes before t takes longer than t may wait.
func (o *oracle) hopeless(t *Ticket) bool {
	earlier, all, own, flows, first := 0.0, 0.0, 0.0, map[string]bool{}, true
	held := o.queues[t.Class].tickets
	for _, h := range held {
		tokens := math.Floor(h.Tokens)
		first = first && t.Deadline.Before(h.Deadline)
		if all += tokens; h.Flow == t.Flow {
			own += tokens
		}
		if flows[h.Flow] = true; h.Deadline.UnixNano()/250e6 <= t.Deadline.UnixNano()/250e6 {
			earlier += tokens
		}
	}
	if len(held) == 0 {
		return false
	}
	if first {
		earlier = 0
	}
	o.tick(t.Class)
	p, over := o.past[t.Class], o.over(t.Class)
	rate, ok := p.rate(over)
	allowed, ahead := t.Deadline.Sub(o.now).Seconds(), own*earlier/max(all, 1)
	if len(flows) == 1 && flows[t.Flow] {
		return ok && ahead/rate > allowed
	}
	ahead += all / float64(len(held))
	wait := min(ahead*float64(len(flows)), all) / rate
	if f := p.flows[t.Flow]; f != nil {
		if of, known := f.rate(over); known {
			if (wait > allowed) != (ahead/of > allowed) {
				o.seen["flow's rate"]++
			}
			wait, ok = ahead/of, true
		}
	}
	return ok && wait > allowed
}
