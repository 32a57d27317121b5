package workload

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/lab/sample"
)

// kind is a sort of session: a conversation whose every request carries all that was said before.
type kind struct {
	systems  int // texts that sessions begin with, chosen by Zipf with exponent 1
	system   [2]int
	turns    turns
	user     logNormal // tokens that a turn adds before the answer
	answer   logNormal
	pause    func(rng *rand.Rand) float64 // seconds from an answer to the next turn
	limit    int                          // tokens: no turn begins above
	replicas int                          // for which there are so many systems
}

// chat is people in a chat. 3.5 turns is the mean of ShareGPT (94,145 conversations, 330,239 turns), without
// the many single questions of other collections; lengths and pauses are assumptions: a question of two
// sentences, an answer of some paragraphs, which takes its reader half a minute.
var chat = kind{
	systems: 24, system: [2]int{1000, 2000},
	turns:  turns{mean: 3.5, cap: 20},
	user:   logNormal{mean: 100, sigma: 1, low: 5, high: 4000},
	answer: logNormal{mean: 300, sigma: 0.8, low: 10, high: 2000},
	pause:  func(rng *rand.Rand) float64 { return 8 + 22*rng.ExpFloat64() },
	limit:  32_000, replicas: 4,
}

// code is coding agents. Long runs of steps over a long context, short answers, tool output appended
// between them, and pauses of seconds, with a human's now and then: the traits that TraceLab measured on
// 4,300 sessions (arXiv 2606.30560), at a tenth of its steps and contexts, which would not fit an 8B replica.
var code = kind{
	systems: 40, system: [2]int{6000, 14000},
	turns:  turns{mean: 10, cap: 60},
	user:   logNormal{mean: 700, sigma: 1.2, low: 10, high: 12_000},
	answer: logNormal{mean: 160, sigma: 0.8, low: 10, high: 2000},
	pause: func(rng *rand.Rand) float64 {
		if rng.Float64() < 1.0/8 {
			return 10 + 30*rng.ExpFloat64()
		}
		return 0.5 + 3*rng.ExpFloat64()
	},
	limit: 60_000, replicas: 4,
}

// sessions is W6 and W9. Sessions have gone on since before the start, so the rate is right from then on.
func sessions(name, shape string, loads []float64, chatShare float64) Info {
	i := steady(Info{Name: name, Shape: shape, Profile: "8B", Replicas: 4, Loads: loads}, func(p Params) Source {
		return &merged{a: chat.source(p, chatShare, 0), b: code.source(p, 1-chatShare, 16)}
	})
	i.Warm = 2 * time.Minute
	return i
}

// before is how long before the start the first sessions began, longer than nearly all of them last.
const before = 10 * time.Minute

// token is what a token of an answer is taken to need in sessions before the start: an 8B replica's decode
// step at a fair load.
const token = 15 * time.Millisecond

// source begins sessions at the rate that makes share of p.Rate requests.
func (k kind) source(p Params, share float64, part uint64) Source {
	texts := source(p.Seed, part+ofTexts)
	systems := make([]text, scaled(k.systems, p.Replicas, k.replicas))
	for i := range systems {
		systems[i].add(texts.Uint64(), sample.Between(texts, k.system[0], k.system[1]))
	}
	popular := sample.NewZipf(len(systems), 1)
	begin := func(at time.Duration) *Request {
		rng := source(texts.Uint64(), p.Seed)
		s := &session{kind: k, rng: rng, left: k.turns.draw(rng), end: p.Length}
		s.talk = systems[popular.Pick(rng)].with(0, 0)
		return s.turn(at)
	}
	from := &arrivals{rng: source(p.Seed, part+ofArrivals), gap: poisson, rate: share * p.Rate / k.turns.expected(),
		at: -before, end: p.Length, left: -1, make: begin}
	return &merged{a: k.underWay(from), b: from}
}

// underWay takes the sessions that begin before the start and returns the first turn of each after it.
func (k kind) underWay(from *arrivals) *list {
	var all list
	for {
		r, ok := from.Next()
		if !ok {
			break
		}
		started := r.At >= 0
		for r != nil && r.At < 0 && r.Then != nil {
			r = r.Then(r.At + time.Duration(r.Output)*token)
		}
		if r != nil && r.At >= 0 {
			all = append(all, r)
		}
		if started {
			break // the first one that begins after the start was taken, too
		}
	}
	slices.SortStableFunc(all, func(a, b *Request) int { return cmp.Compare(a.At, b.At) })
	return &all
}

// session is one conversation. Its randomness is its own, so what it says does not depend on when.
type session struct {
	kind
	rng  *rand.Rand
	talk text
	left int // turns
	end  time.Duration
}

// turn makes the session's next request.
func (s *session) turn(at time.Duration) *Request {
	s.talk.add(s.rng.Uint64(), s.user.draw(s.rng))
	r := &Request{At: at, Prompt: s.talk.tokens, Output: s.answer.draw(s.rng)}
	r.Blocks = slices.Clip(s.talk.blocks)
	s.talk.add(s.rng.Uint64(), r.Output)
	pause := seconds(s.pause(s.rng))
	if s.left--; s.left == 0 || s.talk.tokens > s.limit {
		return r
	}
	r.Blocks = slices.Clip(s.talk.blocks)
	r.Then = func(end time.Duration) *Request {
		if end+pause >= s.end {
			return nil
		}
		return s.turn(end + pause)
	}
	return r
}
