package workload

import "time"

// shared is traffic of groups that have a long system prompt each and ask short questions under it.
type shared struct {
	groups, questions     int // questions per group
	system, question, out int // tokens
	replicas              int
}

// b2b is W3, llm-d's "73-capacity" run of the b2b-saas shape on 8 x Qwen3-32B (guides/optimized-baseline of
// github.com/llm-d/llm-d): its data section, as it stands in the published result.
var b2b = shared{groups: 150, questions: 5, system: 6000, question: 1200, out: 1000, replicas: 8}

// llama70 is W3b, llm-d's "37-capacity" run on 4 x Llama-3.1-70B.
var llama70 = shared{groups: 83, questions: 3, system: 8000, question: 1000, out: 1000, replicas: 4}

// systems is the groups' system prompts.
func (s shared) systems(p Params) []text {
	rng := source(p.Seed, ofTexts)
	all := make([]text, scaled(s.groups, p.Replicas, s.replicas))
	for i := range all {
		all[i].add(rng.Uint64(), s.system)
	}
	return all
}

// prompts is every question of every group, in an order of the seed.
func (s shared) prompts(p Params) []text {
	systems, rng := s.systems(p), source(p.Seed, ofTexts+1)
	all := make([]text, 0, len(systems)*s.questions)
	for _, t := range systems {
		for range s.questions {
			all = append(all, t.with(rng.Uint64(), s.question))
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (s shared) request(at time.Duration, t text) *Request {
	return &Request{At: at, Blocks: t.blocks, Prompt: t.tokens, Output: s.out}
}

// repeating draws one of the prompts at random each time. llm-d's load generator sends them in one order
// over and over (see ladder); in a steady run that would let round robin bring each prompt back to half of
// 8 replicas only, since 750 and 8 have a common divisor.
func (s shared) repeating(p Params) Source {
	prompts, rng := s.prompts(p), source(p.Seed, ofTexts+2)
	return steadily(p, func(at time.Duration) *Request {
		return s.request(at, prompts[rng.IntN(len(prompts))])
	})
}

// fresh draws a group at random and asks a question that nobody asked before.
func (s shared) fresh(p Params) Source {
	systems, rng := s.systems(p), source(p.Seed, ofTexts+1)
	return steadily(p, func(at time.Duration) *Request {
		t := systems[rng.IntN(len(systems))]
		return s.request(at, t.with(rng.Uint64(), s.question))
	})
}

// steadily is a Poisson process at the given rate for the given length.
func steadily(p Params, make func(at time.Duration) *Request) *arrivals {
	return &arrivals{rng: source(p.Seed, ofArrivals), gap: poisson, rate: p.Rate, end: p.Length, left: -1, make: make}
}
