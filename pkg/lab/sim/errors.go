package sim

import (
	"math"
	"slices"

	"github.com/weirproxy/weir/pkg/lab/sample"
	"github.com/weirproxy/weir/pkg/pool"
)

// Error is how far what weir predicted of requests is off what they turned out to be.
type Error struct {
	N           int     // requests of which it was predicted and is known
	Median, P90 float64 // of |predicted/actual - 1|; infinite for something predicted where nothing was
	Bias        float64 // sum of the predicted over that of the actual
}

// errs gathers what was predicted of one thing.
type errs struct {
	off               []float64
	predicted, actual float64
}

func (e *errs) add(predicted, actual float64) {
	e.predicted, e.actual = e.predicted+predicted, e.actual+actual
	if predicted > 0 || actual > 0 {
		e.off = append(e.off, math.Abs(predicted/actual-1))
	}
}

func (e *errs) error() Error {
	slices.Sort(e.off)
	return Error{len(e.off), sample.Rank(e.off, 50), sample.Rank(e.off, 90), over(e.predicted, e.actual)}
}

// forecast lays what weir predicted of an answered request beside what it was.
func (r *run) forecast(j *job) {
	f, ok := j.Forecast()
	if !ok {
		return
	}
	if r.errs == nil {
		r.errs = map[pool.What]*errs{}
		for _, w := range pool.Whats() {
			r.errs[w] = &errs{}
		}
	}
	if f.Wait > 0 {
		r.errs[pool.GateWait].add(f.Wait, (j.Seq.Submitted - j.at).Seconds())
	}
	r.errs[pool.PromptTokens].add(f.Prompt, float64(j.Req.Prompt))
	r.errs[pool.CachedTokens].add(f.Cached, float64(j.Seq.Cached))
	r.errs[pool.OutputTokens].add(f.Output, float64(j.Req.Output))
	r.errs[pool.FirstToken].add(f.First, (j.Seq.First - j.Seq.Submitted).Seconds())
}

// errors works them out; none for a rule that predicts nothing.
func (r *run) errors() map[pool.What]Error {
	all := map[pool.What]Error{}
	for w, e := range r.errs {
		all[w] = e.error()
	}
	return all
}
