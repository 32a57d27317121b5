package policy

import (
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/knee"
	"github.com/weirproxy/weir/pkg/lab/step"
)

// oracle is weir's cost rule (package pick) without its ignorance: what each cache holds and can hold, how fast each replica
// is, what it has still to compute, how long every answer will be. It sends at once, so it shows what better knowledge could win, not what
// holding could.
//
// How fast a replica is counts for the wait there. A request's own work has one price on all of them, that of Env.Profile:
// with each one's own, the fast ones take nearly all while they have no queue, the others' caches lie idle, and decodes crowd.
// Of 4 x 8B and 4 x 32B under W5-35 at 20 requests/s, TTFT is 0.189 s, TPOT 58 ms and hits 61 % that way, 0.140 s, 19 ms and
// 67 % with one price (DESIGN.md 4).
type oracle struct {
	immediate
	price   knee.Rates
	ahead   [][]waiting // on each replica, those whose answer has not begun, by arrival
	context []float64   // tokens that the open requests of each hold on average
	work    float64     // mean prefill seconds of a request
	others  float64     // and of one that is not bulk
	kvTime  float64     // mean of their KV times
}

// waiting is a call whose answer has not begun, and what of its prompt was not cached when it was sent.
type waiting struct {
	call     *Call
	uncached float64
}

// workGain is package pool's.
const workGain = 0.01

func newOracle(e Env) *oracle {
	n := len(e.Replicas)
	o := &oracle{price: constants(e.Profile), ahead: make([][]waiting, n), context: make([]float64, n)}
	o.immediate = immediate{newLedger(e), o}
	return o
}

// look is one replica as it is.
type look struct {
	wait, place, prefill, decode, uncached, share float64

	bulk bool // some of it waits there
}

// rates are a replica's own, at the speed at which it runs now.
func rates(r *step.Replica) knee.Rates {
	own, slow := constants(r.Profile()), r.Slow()
	own.Step, own.Seq, own.Context, own.Token = slow*own.Step, slow*own.Seq, slow*own.Context, slow*own.Token
	return own
}

func (o *oracle) pick(_ time.Duration, c *Call) int {
	looks, all, others, place := make([]look, o.n()), 0.0, 0.0, 0.0
	out := float64(c.Req.Output)
	for i, r := range o.env.Replicas {
		v := o.look(c, i, r)
		looks[i] = v
		all += v.wait / float64(o.n())
		if !v.bulk {
			others += v.wait / float64(o.n())
		}
		place += v.place / float64(o.n())
	}
	m, mK := knee.Miss(others, o.others), knee.Miss(place, o.kvTime)
	if isBulk(c) {
		m = knee.Miss(all, o.work)
	}
	slot := o.least(func(i int) float64 {
		v := &looks[i]
		return v.wait + v.place + v.uncached*v.prefill*m + v.share*out*v.decode*(mK-1)
	})
	o.note(c, slot, &looks[slot])
	return slot
}

func (o *oracle) look(c *Call, slot int, r *step.Replica) (v look) {
	st := r.Stats()
	var backlog, coming float64
	for _, w := range o.ahead[slot] {
		v.bulk = v.bulk || isBulk(w.call)
		left, ok := w.call.Seq.Left()
		if !ok { // not yet admitted
			backlog += w.uncached
			coming += w.uncached + float64(w.call.Req.Output)
			continue
		}
		backlog += float64(left)
	}
	v.decode = o.price.Decode(float64(o.live[slot]), o.context[slot])
	v.prefill = o.price.Prefill(v.decode)
	own := rates(r)
	decode := own.Decode(float64(o.live[slot]), o.context[slot])
	v.wait = backlog * own.Prefill(decode)
	v.uncached = float64(max(c.Req.Prompt-r.Match(&c.Seq), 1))
	memory := float64(st.KVBlocks * step.BlockTokens)
	v.share = (v.uncached + float64(c.Req.Output)) / memory
	v.place = knee.MemoryWith(st.KVUsage()+coming/memory).Wait(knee.NeedOf(v.share), float64(c.Req.Output)*decode)
	return v
}

// note takes the call into the books.
func (o *oracle) note(c *Call, slot int, v *look) {
	learn := func(mean *float64, of float64) {
		if *mean == 0 {
			*mean = of
		}
		*mean += workGain * (of - *mean)
	}
	learn(&o.work, v.uncached*o.price.Token)
	if !isBulk(c) {
		learn(&o.others, v.uncached*o.price.Token)
	}
	learn(&o.kvTime, v.share*float64(c.Req.Output)*v.decode)
	o.ahead[slot] = append(o.ahead[slot], waiting{c, v.uncached})
	o.context[slot] += held(c)
}

// Retry moves the call in the books, too.
func (o *oracle) Retry(now time.Duration, c *Call) bool {
	from := slices.IndexFunc(o.ahead[c.Slot], func(w waiting) bool { return w.call == c })
	w := o.ahead[c.Slot][from]
	o.ahead[c.Slot] = slices.Delete(o.ahead[c.Slot], from, from+1)
	o.context[c.Slot] -= held(c)
	ok := o.immediate.Retry(now, c)
	o.ahead[c.Slot] = append(o.ahead[c.Slot], w)
	o.context[c.Slot] += held(c)
	return ok
}

// isBulk reports whether the call is of the bulk class that weir comes with.
func isBulk(c *Call) bool { return c.Req.Class == "bulk" }

// held is the tokens that a call holds on average.
func held(c *Call) float64 { return float64(c.Req.Prompt) + float64(c.Req.Output)/2 }

func (o *oracle) First(now time.Duration, c *Call) {
	o.immediate.First(now, c)
	o.ahead[c.Slot] = slices.DeleteFunc(o.ahead[c.Slot], func(w waiting) bool { return w.call == c })
}

func (o *oracle) End(now time.Duration, c *Call) bool {
	o.context[c.Slot] -= held(c)
	return o.immediate.End(now, c)
}
