package sim

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// groups is a Poisson source of prompts that share their first tokens with their group's.
type groups struct {
	rng                 *rand.Rand
	n                   int // groups
	shared, own, output int
	rate                float64
	left                int // requests
	turns               int // more of each session, each after a second
	bulk                bool

	at   time.Duration
	seed uint64
}

func (g *groups) Next() (*workload.Request, bool) {
	if g.left == 0 {
		return nil, false
	}
	g.left--
	g.at += time.Duration(g.rng.ExpFloat64() / g.rate * 1e9)
	group := uint64(g.rng.IntN(g.n)) + 1
	q := &workload.Request{At: g.at, Prompt: g.shared + g.own, Output: 1 + g.rng.IntN(2*g.output)}
	h := group
	for i := range (q.Prompt + q.Output) / step.BlockTokens {
		if i == g.shared/step.BlockTokens {
			g.seed++
			h += g.seed << 32
		}
		h = mix(h)
		q.Blocks = append(q.Blocks, h)
	}
	if g.bulk && g.rng.IntN(2) == 0 {
		q.Class = "bulk"
	}
	if g.turns > 0 {
		q.Then = g.then(q, g.turns)
	}
	return q, true
}

// then extends a prompt by its answer.
func (g *groups) then(last *workload.Request, turns int) func(time.Duration) *workload.Request {
	return func(end time.Duration) *workload.Request {
		q := *last
		q.At, q.Prompt, q.Then = end+time.Second, last.Prompt+last.Output+50, nil
		q.Blocks = append([]uint64(nil), last.Blocks...)
		for h := q.Blocks[len(q.Blocks)-1]; len(q.Blocks) < (q.Prompt+q.Output)/step.BlockTokens; {
			h = mix(h)
			q.Blocks = append(q.Blocks, h)
		}
		if turns > 1 {
			q.Then = g.then(&q, turns-1)
		}
		return &q
	}
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31 | 1
}

func newGroups(seed uint64, rate float64, requests int) *groups {
	return &groups{rng: rand.New(rand.NewPCG(seed, 3)), n: 40, shared: 2000, own: 600, output: 100, rate: rate, left: requests}
}

func mustRun(t testing.TB, cfg Config, src workload.Source, span Span) (*Sim, *Result) {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(src, span)
	if err != nil {
		t.Fatalf("%s: %v", cfg.Policy, err)
	}
	return s, r
}

func config(policy string, seed uint64) Config {
	p, _ := step.Lookup("8B")
	p.KVTokens = 60_000
	return Config{Profile: p, Replicas: 4, Routers: 1, Policy: policy, Seed: seed}
}

// TestSameSeedSameResult: every policy, twice, with sessions, two classes, two routers and old gauges.
func TestSameSeedSameResult(t *testing.T) {
	for _, name := range policy.Names() {
		var last *Result
		for _, seed := range []uint64{1, 1, 2} {
			cfg := config(name, seed)
			cfg.Routers, cfg.Stale = 2, 300*time.Millisecond
			src := newGroups(seed, 30, 150)
			src.turns, src.bulk = 2, true
			_, r := mustRun(t, cfg, src, Span{})
			if r.Arrived != 3*150 || r.Arrived != r.Answered+r.Late+r.Refused {
				t.Errorf("%s: %d arrived, %d answered, %d late, %d refused", name, r.Arrived, r.Answered, r.Late, r.Refused)
			}
			if last != nil && reflect.DeepEqual(r, last) != (seed == 1) {
				t.Errorf("%s seed %d: %+v\nand before: %+v", name, seed, r, last)
			}
			last = r
		}
	}
}
