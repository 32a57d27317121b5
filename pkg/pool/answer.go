package pool

import (
	"math"
	"sync/atomic"
	"time"
)

// answerGain is the weight of one finished request in the mean answer (simulated: DESIGN.md 4).
const answerGain = 0.02

// mostAnswer bounds what is learned of an answer, in tokens: the longest context of a model is of that order. Each takes blocks of
// an index when it is sent.
const mostAnswer = 1 << 20

// answer is the moving mean of the answers' tokens over the requests that the replicas finished, whoever sent them. It is
// read outside the critical section.
type answer struct{ bits atomic.Uint64 }

func (a *answer) tokens() float64 { return math.Float64frombits(a.bits.Load()) }

// learn takes in n more answers of so many tokens together.
func (a *answer) learn(n, tokens float64) {
	mean := a.tokens()
	mean += (1 - math.Pow(1-answerGain, n)) * (tokens/n - mean)
	a.bits.Store(math.Float64bits(mean))
}

// Output is the tokens that an answer is expected to have: Config.OutputTokens, until the replicas' own counters tell.
func (p *Pool) Output() float64 { return p.answer.tokens() }

// Observe takes a scrape of r, one of the pool's replicas.
func (p *Pool) Observe(now time.Time, r *Replica, s Sample) {
	theirs, ran := r.foreign, r.ran
	restarts := r.restarts
	s.doubt()
	r.Observe(now, s)
	p.learn(now)
	p.theirs, p.ran = p.theirs+r.foreign-theirs, p.ran+r.ran-ran // whole numbers: the sums stay exact
	if d := r.lately.answers; d.Has && d.Sum >= d.Count {        // less: no answer is empty
		p.answer.learn(d.Count, min(d.Sum, d.Count*min(r.kvTokens, mostAnswer))) // none is longer than its memory
	}
	if s.HasRunning && s.HasWaiting {
		p.foreign.observe(len(p.Replicas), r.foreign, s.Running+s.Waiting)
		r.Index.SetOthers(1/p.Own() - 1)
	}
	p.look(now, r, r.restarts != restarts)
}
