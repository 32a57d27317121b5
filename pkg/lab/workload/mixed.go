package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// Classes of W7 and W8, as package classify's default has them.
const (
	interactive = "interactive"
	bulk        = "bulk"
)

// The interactive request of W7: 2,000 prompt tokens, half of them one of 24 system prompts. The bulk
// request: log-normal around 23,000 prompt tokens that nobody shares, 400 answer tokens. At 15 and 40
// interactive requests per second, 8 x 32B spend a tenth and three tenths of their time on interactive
// prefill; 40 is nearly half of what they hold of interactive requests alone (89).
const (
	mixedReplicas = 8
	mixedProfile  = "32B"
	mixedApps     = 24
	mixedSystem   = 1000
	mixedQuestion = 1000
	bulkOutput    = 400
)

var (
	mixedAnswer = logNormal{mean: 200, sigma: 0.5, low: 10, high: 1000}
	bulkPrompt  = logNormal{mean: 23_000, sigma: 0.5, low: 2000, high: 64_000}
)

// maker makes interactive and bulk requests.
type maker struct {
	rng  *rand.Rand
	apps []text
}

func newMaker(p Params, part uint64) *maker {
	rng := source(p.Seed, ofTexts)
	m := &maker{rng: source(p.Seed, part), apps: make([]text, scaled(mixedApps, p.Replicas, mixedReplicas))}
	for i := range m.apps {
		m.apps[i].add(rng.Uint64(), mixedSystem)
	}
	return m
}

func (m *maker) interactive(at time.Duration, flow string) *Request {
	t := m.apps[m.rng.IntN(len(m.apps))].with(m.rng.Uint64(), mixedQuestion)
	return &Request{At: at, Blocks: t.blocks, Prompt: t.tokens, Output: mixedAnswer.draw(m.rng), Class: interactive, Flow: flow}
}

func (m *maker) bulk(at time.Duration) *Request {
	t := text{}.with(m.rng.Uint64(), bulkPrompt.draw(m.rng))
	return &Request{At: at, Blocks: t.blocks, Prompt: t.tokens, Output: bulkOutput, Class: bulk, Flow: "batch"}
}

// mixed is the 20/60/20 mix. weir has two classes, so the first two shares are interactive, of a small and
// a large tenant.
func mixed(name, shape string) Info {
	return steady(Info{Name: name, Shape: shape, Profile: mixedProfile, Replicas: mixedReplicas, Loads: []float64{5, 10, 14}},
		func(p Params) Source {
			m := newMaker(p, ofTexts+1)
			return steadily(p, func(at time.Duration) *Request {
				switch x := m.rng.Float64(); {
				case x < 0.2:
					return m.interactive(at, "premium")
				case x < 0.8:
					return m.interactive(at, "standard")
				}
				return m.bulk(at)
			})
		})
}

// backlog is interactive requests whose gaps have that coefficient of variation, at Params.Rate, beside bulk
// at a rate that does not depend on it: times what the replicas hold of bulk alone.
func backlog(name string, times, cv float64) Info {
	gap, how := poisson, "Poisson"
	if cv != 1 {
		gap, how = bursts(cv), fmt.Sprintf("bursts (CV %v)", cv)
	}
	return steady(Info{
		Name: name, Shape: fmt.Sprintf("interactive requests, %s, and bulk at %v times the capacity for it", how, times),
		Profile: mixedProfile, Replicas: mixedReplicas, Loads: []float64{15, 40}, Unit: "interactive requests/s",
	}, func(p Params) Source {
		front, back := newMaker(p, ofTexts+1), newMaker(p, ofBulk)
		a := steadily(p, func(at time.Duration) *Request { return front.interactive(at, "chat") })
		a.gap = gap
		b := steadily(p, back.bulk)
		b.rng, b.rate = source(p.Seed, ofBulkArrivals), times*bulkCapacity(p.Replicas)
		return &merged{a: a, b: b}
	})
}

// bulkCapacity is the bulk requests per second that the replicas of the default profile hold.
func bulkCapacity(replicas int) float64 {
	each, _ := demand{Uncached: bulkPrompt.mean, Output: bulkOutput, Context: bulkPrompt.mean + bulkOutput/2,
		Held: func(n float64) float64 { return n * (bulkPrompt.mean + bulkOutput/2) }}.Knee(mustProfile(mixedProfile))
	return each * float64(replicas)
}

// interactiveCapacity is the interactive requests per second that they hold, when caches hold every system prompt.
func interactiveCapacity(replicas int) float64 {
	context := mixedSystem + mixedQuestion + mixedAnswer.mean/2
	each, _ := demand{Uncached: mixedQuestion, Output: mixedAnswer.mean, Context: context,
		Held: func(n float64) float64 { return mixedApps*mixedSystem + n*(mixedQuestion+mixedAnswer.mean) }}.Knee(mustProfile(mixedProfile))
	return each * float64(replicas)
}

// Leftover is the bulk requests per second that replicas hold beside so many interactive ones of W7: what is left of their
// time, if each sort takes its part of what they hold of it alone. Beside 15 and 40 interactive ones a second, that is 2.97
// and 1.97. The most that a gate gets is the same within 1 %: with bulk on all replicas at once and up to all of their KV,
// 2.95 and 1.95, or 68,400 and 44,800 prompt tokens a second, at 16 and 9 times the interactive p99.
func Leftover(interactive float64, replicas int) float64 {
	return bulkCapacity(replicas) * max(0, 1-interactive/interactiveCapacity(replicas))
}

// MixedCapacity is the requests per second of the 20/60/20 mix of W7 and W8 that so many replicas of a profile hold.
func MixedCapacity(p step.Profile, replicas int) float64 {
	front, back := float64(mixedQuestion), bulkPrompt.mean
	out := 0.8*mixedAnswer.mean + 0.2*bulkOutput
	context := (0.8*mixedAnswer.mean*(mixedSystem+front+mixedAnswer.mean/2) + 0.2*bulkOutput*(back+bulkOutput/2)) / out
	// A sequence stays as long as its answer takes, so what the running ones hold is in proportion to output.
	each, _ := demand{Uncached: 0.8*front + 0.2*back, Output: out, Context: context,
		Held: func(n float64) float64 { return n * context }}.Knee(p)
	return each * float64(replicas)
}

// sweep is the same workload at 0.3 to 1.3 of its capacity, by 0.05.
func sweep(i Info) Info {
	i.Loads = nil
	capacity := MixedCapacity(mustProfile(mixedProfile), mixedReplicas)
	for k := 6; k <= 26; k++ {
		i.Loads = append(i.Loads, math.Round(capacity*float64(k)*5)/100)
	}
	return i
}

func mustProfile(name string) step.Profile {
	p, err := step.Lookup(name)
	if err != nil {
		panic(err) // the name is a constant
	}
	return p
}
