package gate

import (
	"math"
	"time"
)

// past is what was admitted of a class or a flow while somebody of it was held, by a clock that runs only then.
type past struct {
	clock  float64   // seconds
	since  time.Time // of the clock
	at     []float64 // the clock at each admission
	tokens []float64
	flows  map[string]*past // of a class: those that the queue knows
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
	o.past[class].tick(o.now, len(with) > 0)
	for flow, p := range o.past[class].flows {
		p.tick(o.now, with[flow])
	}
}

// rate is tokens per second of that clock, what is long past counting less and less; ok is false for too few.
func (p *past) rate(class Class) (rate float64, ok bool) {
	tau := max(class.Deadline.Seconds()/4, 1)
	sum := 0.0
	for i, at := range p.at {
		sum += p.tokens[i] * math.Exp((at-p.clock)/tau)
	}
	return sum / (tau * (1 - math.Exp(-p.clock/tau))), len(p.at) >= 20
}

// hopeless reports whether what goes before t takes longer than t may wait.
func (o *oracle) hopeless(t *Ticket) bool {
	earlier, all, own, flows, first := 0.0, 0.0, 0.0, map[string]bool{}, true
	for _, h := range o.queues[t.Class].tickets {
		tokens := math.Floor(h.Tokens)
		first = first && t.Deadline.Before(h.Deadline)
		if all += tokens; h.Flow == t.Flow {
			own += tokens
		}
		if flows[h.Flow] = true; h.Deadline.UnixNano()/250e6 <= t.Deadline.UnixNano()/250e6 {
			earlier += tokens
		}
	}
	if all == 0 || first {
		return false
	}
	o.tick(t.Class)
	p, class := o.past[t.Class], o.classes[t.Class]
	rate, ok := p.rate(class)
	allowed, ahead := t.Deadline.Sub(o.now).Seconds(), own*earlier/all
	wait := min(ahead*float64(len(flows)), all) / rate
	if f := p.flows[t.Flow]; f != nil && len(flows) > 1 {
		if of, known := f.rate(class); known {
			if (wait > allowed) != (ahead/of > allowed) {
				o.seen["flow's rate"]++
			}
			wait, ok = ahead/of, true
		}
	}
	return ok && wait > allowed
}
