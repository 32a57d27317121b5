package workload

import (
	"math"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// demand is what a mean request asks of the replica that serves it.
type demand struct {
	Uncached float64 // prompt tokens to compute
	Output   float64 // answer tokens, at least 1
	Context  float64 // prompt and answer so far of a decoding sequence, mean over decode steps
	// Held is the KV tokens that n running sequences hold together, shared blocks once. Not decreasing.
	Held func(n float64) float64
}

// Knee is the requests per second at which one replica saturates, and what binds there: "prefill", "decode"
// or "KV". It solves the step model for its mean: at l requests per second, steps of D seconds and B
// sequences decoding,
//
//	D = Base + B*(PerSeq + PerContext*Context) + D*l*Uncached*PerPrefill,   B = l*Output*D
//	D = Base / (1 - l*w),   w = Uncached*PerPrefill + Output*(PerSeq + PerContext*Context)
//
// and the knee is the largest l with Held(B+1) within the KV memory (one more prefills), B+1 within MaxSeqs,
// and a step's prompt and decode tokens within MaxBatch. What binds is what raises l most when it becomes a
// tenth better. Chance is left out. Poisson arrivals on the step model saturate at 0.91 to 1.03 of this: W5 and
// W10 within 4 %, W3 at 0.92.
func (d demand) Knee(p step.Profile) (rate float64, binds string) {
	rate = d.rate(p)
	faster := p
	faster.PerPrefill = p.PerPrefill * 10 / 11
	prefill := d.rate(faster)
	faster = p
	faster.Base, faster.PerSeq, faster.PerContext = p.Base*10/11, p.PerSeq*10/11, p.PerContext*10/11
	decode := d.rate(faster)
	larger := p
	larger.KVTokens, larger.MaxSeqs = p.KVTokens*11/10, p.MaxSeqs*11/10
	kv := d.rate(larger)
	switch {
	case prefill >= decode && prefill >= kv:
		return rate, "prefill"
	case decode >= kv:
		return rate, "decode"
	}
	return rate, "KV"
}

// rate is the knee by bisection: all that it compares grows with l.
func (d demand) rate(p step.Profile) float64 {
	low, high := 0.0, min(1/d.work(p), float64(p.MaxSeqs)/(d.Output*p.Base.Seconds()))
	for range 50 {
		mid := (low + high) / 2
		if d.fits(p, mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// work is w: the seconds that a request adds to the steps it is part of.
func (d demand) work(p step.Profile) float64 {
	return d.Uncached*p.PerPrefill.Seconds() + d.Output*(p.PerSeq.Seconds()+p.PerContext.Seconds()*d.Context)
}

func (d demand) fits(p step.Profile, l float64) bool {
	step := p.Base.Seconds() / (1 - l*d.work(p))
	running := l * d.Output * step
	return !math.IsInf(step, 0) &&
		d.Held(running+1) <= float64(p.KVTokens) &&
		running+1 <= float64(p.MaxSeqs) &&
		running+l*d.Uncached*step <= float64(p.MaxBatch)
}
