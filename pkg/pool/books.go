package pool

import (
	"math"
	"time"
)

// What weir expects of the requests that it sends is laid beside what the replicas count of them. A scrape tells sums, not
// which request was computed, so the books are sums too:
//
//	computed(t) = all that was sent, less what V says is yet to be computed, less what was never computed
//
// and what a counter moved by is compared with what computed moved by since the scrape before. The two are apart by what is
// under way at either end. The end of one interval is the beginning of the next, so that sums over many intervals lose it.

// books is sums over requests.
type books struct {
	requests float64           // as replicas count them: sequences
	prompt   float64           // tokens of their prompts
	matched  float64           // of those, believed to be cached
	first    float64           // seconds to their first tokens, once they are at the replica, as predicted
	formula  float64           // and without what is learned of that
	exact    float64           // tokens of prompts whose tokens are known
	text     [maxTexts]float64 // tokens of the others at chain.BytesPerToken, by Text
	answers  float64           // answers that came
	output   float64           // tokens that they were expected to have
	guess    float64           // and had, by how long they took
}

// add adds so many times a request, but for its answers. All but the first to a prompt find it in the cache, less a block at
// most.
func (b *books) add(l *Lease, times float64) {
	q := &l.Load
	n, copies := times*q.sequences(), times*q.copies()
	b.requests += n
	b.prompt += copies * q.Prompt
	b.matched += times*(q.Prompt-q.Uncached) + (copies-times)*max(q.Prompt-max(q.Prompts, 1)*l.Replica.block, 0)
	b.first += n * l.first
	b.formula += n * l.formula
	if t := q.Text; t != nil {
		b.text[t.slot] += copies * q.Plain
	} else {
		b.exact += copies * q.Prompt
	}
}

// less is b without o.
func (b books) less(o *books) books {
	b.requests, b.prompt, b.matched = b.requests-o.requests, b.prompt-o.prompt, b.matched-o.matched
	b.first, b.formula, b.exact = b.first-o.first, b.formula-o.formula, b.exact-o.exact
	b.answers, b.output, b.guess = b.answers-o.answers, b.output-o.output, b.guess-o.guess
	for i := range b.text {
		b.text[i] -= o.text[i]
	}
	return b
}

// plus is b and o.
func (b books) plus(o *books) books {
	minus := books{}.less(o)
	return b.less(&minus)
}

// audit is a replica's books, and where they and its counters stood at the last scrape.
type audit struct {
	sent     books
	computed books
	last     Sample
	has      bool
}

// computed is what of the books the replica has computed by its last event.
func (r *Replica) computed() books {
	b := r.audit.sent
	for l := r.oldest; l != nil; l = l.newer {
		b.add(l, -1)
	}
	return b
}

// Kind is what requests are told apart by where the length of answers is learned.
type Kind struct{ Model, Class string }

// End notes how a request of that kind ends, right before its lease is released: with an answer, or failed, so that the
// replica did not compute it. One that is neither was left by its client, and counts as computed if its prompt had drained.
func (p *Pool) End(now time.Time, l *Lease, k Kind, answered, failed bool) {
	if !l.live || l.Load.Aside {
		return
	}
	r := l.Replica
	r.advance(now)
	switch {
	case answered:
		n := l.Load.sequences()
		r.audit.sent.answers += n
		r.audit.sent.output += l.Load.Output
		p.texts.meet(k.Model)
		if l.Load.Output == 0 { // it asked for none: its replica counts one of no tokens, which teaches no length
			return
		}
		guess := r.guess(now, l, maxGuess*p.Output())
		r.audit.sent.guess += n * guess
		p.outputs.learn(now, k, n, guess)
	case failed || l.left > 0:
		r.audit.sent.add(l, -1)
	}
}

const (
	// ownCounters is the share of what replicas run, by Own, above which their counters are taken to be of weir's own requests:
	// gauges that were read while a request came or went are off by one.
	ownCounters = 0.98
	// matchSlack is how far the first tokens that the replicas count may be off the requests in the books, matchLeast how many
	// beyond that, as prompts are under way, and matchFirst how many there are before it can be told.
	matchSlack = 0.1
	matchLeast = 10.0
	matchFirst = 40.0
	// matchMemory is the requests over which it is told.
	matchMemory = 200.0
)

// match is moving sums of the requests that weir takes to be computed, and of the first tokens that replicas counted. Clients
// that the gauges miss between two scrapes show here.
type match struct{ weir, theirs float64 }

// add takes in an interval.
func (m *match) add(requests, counted float64) {
	keep := math.Pow(1-1/matchMemory, max(requests, counted, 0))
	m.weir, m.theirs = keep*m.weir+requests, keep*m.theirs+counted
}

// apart reports whether the two differ by more than what is under way, and early that it is too early to tell.
func (m *match) apart() bool { return math.Abs(m.weir-m.theirs) > matchSlack*m.weir+matchLeast }
func (m *match) early() bool { return m.weir+m.theirs < 2*matchFirst }

// told is what a replica counted between two scrapes, by their sums: Has unless it is more, or less, than can be.
type told struct{ firsts, answers, prompts, hits Summary }

// mostFirst is the mean time to a first token, in seconds, above which a clock was set.
const mostFirst = 600.0

// told is what was counted after last. No request has more tokens than the memory of its replica, of those that got their first
// token or ended since, or one more. What is not believed would be in moving sums for thousands of requests.
func (r *Replica) told(s, last *Sample) (t told) {
	within := func(has bool, count, sum, each float64) Summary {
		return Summary{count, sum, has && count >= 0 && sum >= 0 && sum <= each*(count+1)}
	}
	t.firsts = within(s.TTFT.Has && last.TTFT.Has, s.TTFT.Count-last.TTFT.Count, s.TTFT.Sum-last.TTFT.Sum, mostFirst)
	answers := s.Answers - last.Answers
	t.answers = within(s.HasAnswers && last.HasAnswers, answers, s.AnswerTokens-last.AnswerTokens, r.kvTokens)
	requests := max(answers, t.firsts.Count, 0)
	t.prompts = within(s.HasPrompt && last.HasPrompt, requests, s.Prompt-last.Prompt, r.kvTokens)
	t.hits = within(s.Hits.Has && last.Hits.Has, requests, s.Hits.Sum-last.Hits.Sum, r.kvTokens)
	return t
}

// look lays what the replica counted since its last scrape beside the books. Intervals in which others ran are left out, and
// those after a restart.
func (p *Pool) look(now time.Time, r *Replica, restarted bool) {
	a, s := &r.audit, &r.sample
	r.steps.tell(now, r.lately.interToken, r.decode)
	done, last := r.computed(), a.last
	d := done.less(&a.computed)
	whole := a.has && !restarted
	a.computed, a.last, a.has = done, *s, true
	if !whole || r.foreign > 0 || p.Own() < ownCounters {
		return
	}
	between := r.told(s, &last)
	if between.firsts.Has {
		p.match.add(d.requests, between.firsts.Count)
	}
	if p.match.apart() {
		p.texts.drop()
		p.truth.drop()
		return
	}
	if between.firsts.Has {
		p.rest.add(between.firsts.Count, between.firsts.Sum-d.formula)
	}
	p.truth.add(&d, &between)
	if between.answers.Has {
		p.outputs.count(d.answers, d.guess, between.answers.Sum)
	}
	if between.prompts.Has {
		p.texts.add(&d, between.prompts.Sum)
	}
	if p.match.early() {
		return
	}
	p.truth.settle(d.requests)
	if between.hits.Has && r.capacity.learn(d.requests, versus{d.matched, between.hits.Sum}) {
		r.size(r.block)
	}
	if p.texts.learn(now) {
		for _, r := range p.Replicas {
			r.size(p.texts.block)
		}
	}
}
