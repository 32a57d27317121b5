package pool

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/prefix"
)

// server is a replica of which a test knows what it computes: each prompt some time after weir takes it to be drained.
type server struct {
	p       *Pool
	r       *Replica
	rng     *rand.Rand
	now     float64
	prompt  float64 // counters
	hits    float64
	firsts  Summary
	slow    float64 // seconds that a first token takes beyond the formula
	cached  float64 // share of each prompt that weir believes to be cached: half of it is
	foreign float64 // tokens that others send in a second
	skew    float64 // share of requests that are for one model, which changes every half minute
	live    []*served
}

type served struct {
	lease  Lease
	kind   Kind
	tokens float64
	left   float64 // seconds until it is counted
}

func newServer(seed uint64) *server {
	p := New("p", []string{"a"}, plain)
	return &server{p: p, r: p.Replicas[0], rng: rand.New(rand.NewPCG(seed, 1))}
}

// second sends n requests of the models, of so many tokens to a plain one, and scrapes.
func (s *server) second(models []string, scale []float64, n int) {
	for range n {
		i := s.rng.IntN(len(models))
		if s.rng.Float64() < s.skew {
			i = int(s.now/30) % len(models)
		}
		t := s.p.Text(models[i])
		words := 10 + 200*s.rng.ExpFloat64()
		q := &served{kind: Kind{Model: models[i]}, tokens: words * scale[i] * math.Exp(0.2*s.rng.NormFloat64()-0.02), left: 3 * s.rng.Float64()}
		of := words * t.Scale()
		s.p.Charge(at(s.now), &q.lease, s.r, Load{Prompt: of, Uncached: of * (1 - s.cached), Output: 10, Text: t, Plain: words})
		s.live = append(s.live, q)
		s.now += 1 / float64(n)
	}
	keep := s.live[:0]
	for _, q := range s.live {
		if q.left--; q.left > 0 {
			keep = append(keep, q)
			continue
		}
		s.prompt += q.tokens
		s.hits += 0.5 * (q.lease.Load.Prompt - q.lease.Load.Uncached)
		s.firsts.Count++
		s.firsts.Sum += q.lease.formula + s.slow
		s.p.End(at(s.now), &q.lease, q.kind, true, false)
		q.lease.Release(at(s.now), true)
	}
	s.live = keep
	s.prompt += s.foreign
	running := float64(len(s.live))
	if s.foreign > 0 {
		running += 20
	}
	s.p.Observe(at(s.now), s.r, Sample{
		At: at(s.now), Running: running, HasRunning: true, HasWaiting: true, Prompt: s.prompt, HasPrompt: true, Tokens: s.prompt, HasTokens: true,
		TTFT: Summary{Count: s.firsts.Count, Sum: s.firsts.Sum, Has: true}, Hits: Summary{Count: s.prompt, Sum: s.hits, Has: true},
	})
}

// Models whose mix changes get a scale each. Of a mix that stays as it is only the whole can be known, and that is right.
func TestTextScalesAreLearned(t *testing.T) {
	for _, skew := range []float64{0.6, 0} {
		learnScales(t, skew)
	}
}

func learnScales(t *testing.T, skew float64) {
	t.Helper()
	for _, want := range [][]float64{{1.6}, {1.6, 0.5}, {1, 0.4}} { // of each model
		s := newServer(1)
		s.skew = skew
		models := []string{"a", "b"}[:len(want)]
		for range 1500 {
			s.second(models, want, 8)
		}
		mean, scaled := 0.0, 0.0
		for i, m := range models {
			mean += want[i] / float64(len(models))
			scaled += s.p.Text(m).Scale() / float64(len(models))
			if got := s.p.Text(m).Scale(); math.Abs(got/want[i]-1) > 0.3 && (skew > 0 || len(models) == 1) {
				t.Errorf("%v: %s has %v tokens to a plain one, want %v", want, m, got, want[i])
			}
		}
		if math.Abs(scaled/mean-1) > 0.1 {
			t.Errorf("%v: together %v tokens to a plain one, want %v", want, scaled, mean)
		}
		if got := chain.BytesPerToken / s.p.BytesPerToken(); math.Abs(got/mean-1) > 0.1 && skew == 0 {
			t.Errorf("%v: the pool has %v tokens to a plain one, want %v", want, got, mean)
		}
		if all := s.p.Texts(at(s.now)); len(all) < len(models) || all[len(all)-1].Requests < 1000 || all[len(all)-1].AgeSeconds > 3 {
			t.Errorf("%v: shown as %+v", want, all)
		}
	}
}

// A model's own scale is near after a hundred prompts.
func TestTextScaleIsSoonNear(t *testing.T) {
	s := newServer(2)
	for range 20 {
		s.second([]string{"m"}, []float64{2}, 5)
	}
	if got := s.p.Text("m").Scale(); math.Abs(got/2-1) > 0.15 {
		t.Errorf("after 100 prompts %v tokens to a plain one, want 2", got)
	}
}

// What others send moves no scale, nor does what was never computed.
func TestTextScaleIsOfOwnRequests(t *testing.T) {
	s := newServer(3)
	for range 200 {
		s.second([]string{"m"}, []float64{1}, 5)
	}
	was := s.p.Text("m").Scale()
	s.foreign = 10_000
	for range 100 {
		s.second([]string{"m"}, []float64{1}, 5)
	}
	s.foreign = 0
	if got := s.p.Text("m").Scale(); got != was {
		t.Errorf("beside others %v, before %v", got, was)
	}
	for range 200 {
		s.second([]string{"m"}, []float64{1}, 5)
		var l Lease
		for _, failed := range []bool{true, false} { // refused by the replica; left before it was drained
			s.p.Charge(at(s.now), &l, s.r, Load{Prompt: 3000, Uncached: 3000, Text: s.p.Text("m"), Plain: 3000})
			s.p.End(at(s.now), &l, Kind{Model: "m"}, false, failed)
			l.Release(at(s.now), false)
		}
	}
	if got := s.p.Text("m").Scale(); math.Abs(got-1) > 0.05 {
		t.Errorf("beside requests that were not computed %v, want 1", got)
	}
}

// Clients that the gauges never show, as they come and go between two scrapes, show in the first tokens counted.
func TestTextScaleWithUnseenOthers(t *testing.T) {
	s := newServer(4)
	for range 300 {
		s.prompt += 5000
		s.firsts.Count += 5
		s.second([]string{"m"}, []float64{1}, 5)
	}
	if got := s.p.Text("m").Scale(); got != 1 {
		t.Errorf("%v tokens to a plain one, where others had five of six", got)
	}
}

// Names that no replica answers for take no place, and the places are bounded.
func TestTextsAreBounded(t *testing.T) {
	p := New("p", []string{"a"}, plain)
	end := func(model string, answered bool) {
		var l Lease
		p.Charge(at(0), &l, p.Replicas[0], Load{Prompt: 10, Uncached: 10, Text: p.Text(model), Plain: 10})
		p.End(at(0), &l, Kind{Model: model}, answered, !answered)
		l.Release(at(0), answered)
		p.End(at(0), &l, Kind{Model: model}, true, false) // over
	}
	for i := range 100 {
		end("junk"+string(rune('a'+i)), false)
	}
	if p.Text("junka") != p.Text("anything") {
		t.Error("a name that no replica answers for has a place")
	}
	seen := map[*Text]bool{}
	for i := range 100 {
		name := "m" + string(rune('a'+i))
		end(name, true)
		seen[p.Text(name)] = true
	}
	if len(seen) != maxTexts-firstModel+1 { // and the one of all others
		t.Errorf("%d texts", len(seen))
	}
	if p.Unread() == p.Text("") {
		t.Error("bodies that were not read share a text with those that were")
	}
}

// Blocks that stand for twice the tokens are half as many in the same memory, and what is pinned counts by them.
func TestIndexIsSizedByTheText(t *testing.T) {
	s := newServer(5)
	for range 400 {
		s.second([]string{"m"}, []float64{2}, 5)
	}
	if got := s.r.block / chain.BlockTokens; math.Abs(got-2) > 0.1 {
		t.Fatalf("a block stands for %v times its plain tokens, want 2", got)
	}
	var c chain.Chain
	for i := range 2000 {
		c = append(c, chain.Hash(i+1))
	}
	s.r.Index.Unpin(c, s.r.Index.Pin(c, 0), prefix.All)
	if got, want := float64(s.r.Index.Match(c))*s.r.block, s.r.kvTokens; math.Abs(got/want-1) > 0.02 {
		t.Errorf("the index holds %v tokens, the cache %v", got, want)
	}
}
