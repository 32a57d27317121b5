package load

import (
	"math/rand/v2"
	"time"

	"github.com/weirproxy/weir/pkg/lab/sample"
)

// The kinds of a Contention. Ahead and Behind are the small requests of a burst before and after its giant.
const (
	Interactive = "interactive"
	Bulk        = "bulk"
	Ahead       = "ahead"
	Giant       = "giant"
	Behind      = "behind"
)

// GiantTokens is a giant's prompt: a book, 2.8 s of the 8B profile's prefill.
const GiantTokens = 100_000

// Contention is requests that compete for a pool. No two prompts share a prefix, so that nothing but who waits for
// whom differs from run to run. The same Contention gives the same requests, byte for byte.
//
//	small  a chat of 500 to 3,500 prompt tokens, 19 to 47 of them for each answer token
//	bulk   a text of 8,000 to 16,000 tokens to be labelled with 10 to 30, marked as bulk
//	giant  a chat of GiantTokens and 50 to 150 answer tokens, of the same class as the small ones
//
// Answers of bulk are short so that a run of seconds reaches a steady state: while a pool prefills without a break, a
// full chunk makes each answer token take a quarter of a second.
type Contention struct {
	Seed  uint64
	Model string
}

// Steady is small requests of the kind Interactive: a Poisson process of rate per second of model time.
func (c Contention) Steady(rate float64, length time.Duration) []Arrival {
	return c.small(nil, 1, Interactive, rate, 0, length)
}

// Job is the i-th bulk request, for Loop.
func (c Contention) Job(i int) Arrival {
	return job(c.Model, Bulk, 0, c.source(1<<32+uint64(i)), 10, 30)
}

// Bursts is n bursts of small requests, rate per second for the time on, one burst each period, and a giant in the
// middle of each if giants is set. The small ones are the same with and without.
func (c Contention) Bursts(n int, rate float64, on, period time.Duration, giants bool) (all []Arrival) {
	for i := range n {
		start := time.Duration(i) * period
		part := 10 + 3*uint64(i)
		all = c.small(all, part, Ahead, rate, start, start+on/2)
		if giants {
			rng := c.source(part + 2)
			all = append(all, c.chat(rng, Giant, start+on/2, GiantTokens, sample.Between(rng, 50, 150)))
		}
		all = c.small(all, part+1, Behind, rate, start+on/2, start+on)
	}
	return all
}

// small appends the small requests of one stretch of time.
func (c Contention) small(all []Arrival, part uint64, kind string, rate float64, from, to time.Duration) []Arrival {
	rng := c.source(part)
	poisson(rng, rate, from, to, func(at time.Duration) {
		tokens := sample.Between(rng, 500, 3500)
		all = append(all, c.chat(rng, kind, at, tokens, tokens/sample.Between(rng, 19, 47)))
	})
	return all
}

func (c Contention) chat(rng *rand.Rand, kind string, at time.Duration, tokens, answer int) Arrival {
	return chat(c.Model, kind, at, []message{{"user", text(rng, tokens)}}, answer)
}

func (c Contention) source(part uint64) *rand.Rand { return rand.New(rand.NewPCG(c.Seed, part)) }
