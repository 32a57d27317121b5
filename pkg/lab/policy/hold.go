package policy

import (
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/route"
)

// holding has everybody wait while the pool is saturated, and sends the others by class and arrival: flow control of the
// Gateway API inference extension and the llm-d router (pkg/epp/flowcontrol, README.md, 2026), with strict priority and first
// come, first served inside it, as it is shipped. Who waits for longer than the class's deadline is refused.
type holding struct {
	*weir
	load  saturation
	bands []band // of a class each, the most urgent first
}

// band is a class's requests, by arrival and so by deadline.
type band struct {
	deadline time.Duration // of waiting
	calls    []arrival
}

type arrival struct {
	call *Call
	at   time.Duration
}

func newHolding(r *weir) *holding {
	h := &holding{weir: r, load: newSaturation(r)}
	for _, c := range route.Default().Classes {
		h.bands = append(h.bands, band{deadline: c.Deadline})
	}
	return h
}

func (r *holding) Arrive(now time.Duration, c *Call) bool {
	i := 0
	if bulkClasses[c.Req.Class] {
		i = len(r.bands) - 1
	}
	c.State = Held
	r.bands[i].calls = append(r.bands[i].calls, arrival{c, now})
	return true
}

func (r *holding) Release(now time.Duration, done []*Call) []*Call {
	for i := range r.bands {
		b := &r.bands[i]
		for len(b.calls) > 0 && now >= b.calls[0].at+b.deadline {
			c := b.take()
			c.State, c.Outcome = Refused, route.Late
			done = append(done, c)
		}
	}
	for i := range r.bands {
		for b := &r.bands[i]; len(b.calls) > 0 && r.load.corrected() < 1; {
			c := b.take()
			r.weir.Arrive(now, c)
			done = append(done, c)
		}
	}
	return done
}

func (b *band) take() *Call {
	c := b.calls[0].call
	b.calls[0] = arrival{}
	b.calls = b.calls[1:]
	return c
}

// Next is the next deadline: all else comes with an event.
func (r *holding) Next() (at time.Duration, ok bool) {
	for i := range r.bands {
		if b := &r.bands[i]; len(b.calls) > 0 && (!ok || b.calls[0].at+b.deadline < at) {
			at, ok = b.calls[0].at+b.deadline, true
		}
	}
	return at, ok
}

func (r *holding) End(now time.Duration, c *Call) bool {
	r.weir.End(now, c)
	return true
}

func (r *holding) Observe(now time.Duration, slot int, s step.Stats) bool {
	r.load.scrapes[slot] = s
	return r.weir.Observe(now, slot, s)
}
