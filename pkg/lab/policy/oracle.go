package policy

import (
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/knee"
	"github.com/weirproxy/weir/pkg/lab/step"
)

// oracle is weir's cost rule (package pick) without its ignorance: what each cache holds, what each replica has still to
// compute, how long every answer will be. It sends at once, so it shows what better knowledge could win, not what
// holding could.
type oracle struct {
	immediate
	rates   knee.Rates
	ahead   [][]waiting // on each replica, those whose answer has not begun, by arrival
	context []float64   // tokens that the open requests of each hold on average
	work    float64     // mean prefill seconds of a request
}

// waiting is a call whose answer has not begun, and what of its prompt was not cached when it was sent.
type waiting struct {
	call     *Call
	uncached float64
}

// The weights and the gain are package pick's and package pool's.
const (
	outWeight = 0.01
	kvPrice   = 0.1
	workGain  = 0.01
)

func newOracle(e Env) *oracle {
	p, n := e.Profile, len(e.Replicas)
	o := &oracle{ahead: make([][]waiting, n), context: make([]float64, n), rates: knee.Rates{
		Step: p.Base.Seconds(), Seq: p.PerSeq.Seconds(), Context: p.PerContext.Seconds(), Token: p.PerPrefill.Seconds(), Chunk: float64(p.MaxBatch),
	}}
	o.immediate = immediate{newLedger(e), o}
	return o
}

// look is one replica as it is.
type look struct{ wait, prefill, decode, uncached, kv float64 }

func (o *oracle) pick(_ time.Duration, c *Call) int {
	looks, mean := make([]look, o.n()), 0.0
	for i, r := range o.env.Replicas {
		looks[i] = o.look(c, i, r)
		mean += looks[i].wait / float64(o.n())
	}
	m, out := knee.Miss(mean, o.work), float64(c.Req.Output)
	slot := o.least(func(i int) float64 {
		v := &looks[i]
		return v.wait + v.uncached*v.prefill*m + outWeight*out*v.decode + kvPrice*v.decode*knee.KVPrice(v.kv)
	})
	o.note(c, slot, looks[slot].uncached)
	return slot
}

func (o *oracle) look(c *Call, slot int, r *step.Replica) (v look) {
	st := r.Stats()
	var backlog, coming float64
	for _, w := range o.ahead[slot] {
		left, ok := w.call.Seq.Left()
		if !ok { // not yet admitted
			backlog += w.uncached
			coming += w.uncached + float64(w.call.Req.Output)
			continue
		}
		backlog += float64(left)
	}
	v.decode = o.rates.Decode(float64(o.live[slot]), o.context[slot])
	v.prefill = o.rates.Prefill(v.decode)
	v.wait = backlog * v.prefill
	v.uncached = float64(max(c.Req.Prompt-r.Match(&c.Seq), 1))
	v.kv = st.KVUsage() + coming/float64(st.KVBlocks*step.BlockTokens)
	return v
}

// note takes the call into the books.
func (o *oracle) note(c *Call, slot int, uncached float64) {
	own := uncached * o.rates.Token
	if o.work == 0 {
		o.work = own
	}
	o.work += workGain * (own - o.work)
	o.ahead[slot] = append(o.ahead[slot], waiting{c, uncached})
	o.context[slot] += held(c)
}

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
