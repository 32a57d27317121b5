package pool

import (
	"math"
	"sync/atomic"
	"time"
)

// answerGain is the weight of one finished request in the mean answer (simulated: DESIGN.md 4).
const answerGain = 0.02

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
	if last := r.sample; s.HasAnswers && last.HasAnswers {
		n, tokens := s.Answers-last.Answers, s.AnswerTokens-last.AnswerTokens
		if n > 0 && tokens >= n { // less: the replica restarted between the two
			p.answer.learn(n, min(tokens, n*r.kvTokens)) // none is longer than its memory
		}
	}
	theirs, ran := r.foreign, r.ran
	r.Observe(now, s)
	p.theirs, p.ran = p.theirs+r.foreign-theirs, p.ran+r.ran-ran // whole numbers: the sums stay exact
	if s.HasRunning && s.HasWaiting {
		p.foreign.observe(len(p.Replicas), r.foreign, s.Running+s.Waiting)
		r.Index.SetOthers(1/p.Own() - 1)
	}
}
