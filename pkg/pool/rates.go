package pool

import (
	"time"

	"github.com/weirproxy/weir/pkg/knee"
)

// The constants of each replica's steps are learned from its own counters (knee.Fit). They say how fast its backlog drains,
// what a wait there takes and where its knee is: V, V*P and tau. What a request's own prefill costs is priced alike on all
// replicas, by the mean of what was learned: to price a miss by the replica's own rate sends the warm requests of a slow
// replica to a fast one, which then holds what all ask for and loses it again (DESIGN.md 4).

// work is what a replica did lately. As each gap between two tokens is that of a sequence that decodes, what is to explain
// their mean is weighted by how many do: B, which the gaps tell themselves, as together they are the time that sequences
// decoded.
type work struct {
	sequences float64 // since the last sample, the integral of live leases' sequences, in seconds,
	held      float64 // and of the tokens that they hold
	each      float64 // tokens that one held on average when any was live
	asks      average // uncached prompt tokens of a request
	queue     average // seconds of a request in the replica's own queue
	whole     bool    // the last sample told all that is needed
	gaps      Summary // sums that fade, over samples: of gaps,
	seqs      float64 // of B, once for each gap,
	context   float64 // of the tokens that those hold, once for each gap,
	prompt    float64 // and of uncached tokens computed, each times B
	silent    float64 // seconds up to the last sample in which no gap ended,
	unseen    float64 // and uncached tokens computed in them
}

// studyKeep is what is left of a sample at the next one: ten of them count together, as a step that begins before one and
// ends after it is told of in parts.
const studyKeep = 0.9

// More than any replica decodes at once, and than it has of tokens in a second, prompts or answers, is a counter that jumped.
// Such a sample teaches nothing: one holds the rates at their bounds for minutes.
const (
	mostSeqs   = 1e4
	mostTokens = 1e7
)

// maxUnsure bounds what a doubt about the time of a prompt token adds to bulk (Charge).
const maxUnsure = 0.25

// study takes what the replica counted in the seconds since the last sample, and learns.
func (r *Replica) study(s *Sample, seconds float64) {
	w, c := &r.work, &r.lately
	gap := !w.whole // what it tells is of a longer time
	w.whole = s.InterToken.Has && s.HasComputed
	if w.sequences > 0 {
		w.each = w.held / w.sequences
	}
	w.sequences, w.held = 0, 0
	if c.queue.Has {
		w.queue.add(s.At, c.queue.Sum/c.queue.Count)
	}
	if !(seconds > 0) || gap || !w.whole {
		w.silent, w.unseen = 0, 0
		return
	}
	if !c.hasComputed { // it went back, and the next sample tells both
		w.whole = false
		return
	}
	if c.ttft.Has {
		w.asks.add(s.At, min(c.computed/c.ttft.Count, r.kvTokens)) // none is longer than its memory
	}
	seqs, computed := w.span(c, seconds)
	if seqs > mostSeqs || max(c.interToken.Count, computed) > mostTokens*seconds {
		return
	}
	w.add(c.interToken, seqs, computed)
	if !c.interToken.Has || c.preemptions > 0 { // the gap of a sequence that was preempted is no step
		return
	}
	g := w.gaps
	r.fit.Observe(knee.Steps{
		At: s.At, Gap: g.Sum / g.Count, Gaps: g.Count, Seqs: w.seqs / g.Count, Context: w.context / g.Count, Prompt: w.prompt / g.Sum,
	})
	if r.learn {
		l := r.fit.Learned()
		r.rates, r.unsure = l.Rates, min(l.Spreads[2], maxUnsure)
	}
}

// span is how many sequences decoded, and what was computed of prompts, over the time that the gaps take which ended in these
// seconds: more than the seconds where a step takes longer than a scrape, and then what the samples without a gap told counts.
func (w *work) span(c *counts, seconds float64) (seqs, computed float64) {
	if !c.interToken.Has {
		w.silent, w.unseen = w.silent+seconds, w.unseen+c.computed
		return 0, c.computed
	}
	computed = c.computed
	if gap := c.interToken.Sum / c.interToken.Count; gap > seconds && w.silent > 0 {
		share := min(gap/w.silent, 1)
		seconds, computed = seconds+share*w.silent, computed+share*w.unseen
	}
	w.silent, w.unseen = 0, 0
	return c.interToken.Sum / seconds, computed
}

// add lets what was before count less.
func (w *work) add(gaps Summary, seqs, computed float64) {
	add := func(old *float64, now float64) { *old = studyKeep**old + now }
	add(&w.gaps.Count, gaps.Count)
	add(&w.gaps.Sum, gaps.Sum)
	add(&w.seqs, seqs*gaps.Count)
	add(&w.context, seqs*w.each*gaps.Count)
	add(&w.prompt, seqs*computed)
}

// learn takes the mean of what was learned of the replicas as the pool's rates, and prices by it on all of them at once: idle
// ones must cost the same, or every prompt that none has seen goes to whichever was looked at last.
func (p *Pool) learn(now time.Time) {
	var sum knee.Rates
	for _, r := range p.Replicas {
		sum.Step += r.rates.Step
		sum.Seq += r.rates.Seq
		sum.Context += r.rates.Context
		sum.Token += r.rates.Token
	}
	n := float64(len(p.Replicas))
	p.rates.Step, p.rates.Seq, p.rates.Context, p.rates.Token = sum.Step/n, sum.Seq/n, sum.Context/n, sum.Token/n
	for _, r := range p.Replicas {
		r.setPrice(r.running(now))
	}
}
