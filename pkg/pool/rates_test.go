package pool

import (
	"math/rand/v2"
	"testing"

	"github.com/weirproxy/weir/pkg/knee"
)

// decoder is a replica that decodes without end, by constants of its own: the oracle of these tests. Each second it tells what
// it did.
type decoder struct {
	rates             knee.Rates
	rng               *rand.Rand
	gaps, sum, prompt float64
	tokens, started   float64
}

// second is the page after one more second under some load of sequences that hold each tokens.
func (s *decoder) second(at0, each float64) Sample {
	b, q := 5+40*s.rng.Float64(), 8000*s.rng.Float64()
	gap := s.rates.Decode(b, b*each) / (1 - s.rates.Token*q)
	s.sum += b // b sequences decode for a second
	s.gaps += b / gap
	s.prompt += q
	s.tokens += q + b/gap
	return Sample{
		At: at(at0), Tokens: s.tokens, HasTokens: true, Started: s.started, HasStarted: true,
		InterToken: Summary{Count: s.gaps, Sum: s.sum, Has: true}, Computed: s.prompt, HasComputed: true,
	}
}

func ratesOf(t *testing.T, name string) knee.Rates {
	t.Helper()
	c, ok := Default(name)
	if !ok {
		t.Fatalf("no profile %s", name)
	}
	return c.Rates()
}

// TestRatesAreFoundAgain: of a replica that restarts with another model, and one that gets a neighbour that takes half of it,
// and loses it again. What it tells of the time in between, and with counters that went back, teaches nothing wrong.
func TestRatesAreFoundAgain(t *testing.T) {
	cfg, _ := Default("8B")
	p := New("p", []string{"a"}, cfg)
	r := p.Replicas[0]
	var l Lease
	r.charge(at(0), &l, Load{Prompt: 4000, Uncached: 1, Output: 2000})
	s := &decoder{rates: ratesOf(t, "8B"), rng: rand.New(rand.NewPCG(1, 2)), started: 1000}
	now := 0.0
	run := func(what string, rates knee.Rates, about float64) {
		t.Helper()
		s.rates = rates
		for range 60 {
			now++
			p.Observe(at(now), r, s.second(now, 5000))
		}
		d := func(r knee.Rates) float64 { return r.Decode(25, 125_000) }
		if x := d(r.rates) / d(rates); x < 0.85 || x > 1.15 {
			t.Errorf("%s: a step takes %.2f times what it does", what, x)
		}
		if x := r.rates.Token / rates.Token; x < 1-about || x > 1+about {
			t.Errorf("%s: a prompt token takes %.2f times what it does", what, x)
		}
		if p.rates.Token != r.rates.Token {
			t.Errorf("%s: the pool of one has a rate of its own", what)
		}
	}
	half := func(r knee.Rates) knee.Rates {
		return knee.Rates{Step: 2 * r.Step, Seq: 2 * r.Seq, Context: 2 * r.Context, Token: 2 * r.Token, Chunk: r.Chunk}
	}
	run("as told", s.rates, 0.1)
	run("a neighbour", half(s.rates), 0.1)
	run("it leaves", ratesOf(t, "8B"), 0.15)
	s.gaps, s.sum, s.prompt, s.tokens, s.started = 0, 0, 0, 0, 2000
	run("another model", ratesOf(t, "70B"), 0.3) // of its parts, to tell which is whose takes loads that differ
	if r.restarts != 1 {
		t.Errorf("%d restarts", r.restarts)
	}

	before := r.rates
	for range 30 { // it idles: the counters stand still
		now++
		page := s.second(now, 5000)
		page.InterToken, page.Computed, page.Tokens = r.sample.InterToken, r.sample.Computed, r.sample.Tokens
		p.Observe(at(now), r, page)
	}
	if r.rates != before {
		t.Error("counters that stand still teach something")
	}
}

// TestFixedRates: told not to learn, weir keeps the policy's constants whatever the replica tells.
func TestFixedRates(t *testing.T) {
	cfg, _ := Default("8B")
	cfg.Learn = false
	p := New("p", []string{"a"}, cfg)
	s := &decoder{rates: ratesOf(t, "70B"), rng: rand.New(rand.NewPCG(1, 2)), started: 1000}
	for now := range 60 {
		p.Observe(at(float64(now)), p.Replicas[0], s.second(float64(now), 5000))
	}
	e := p.Replicas[0].Estimates(at(60))
	if p.Replicas[0].rates != cfg.Rates() || *p.rates != cfg.Rates() || e.Slow.Value != 1 || e.Slow.Samples != 0 || e.PromptToken.Value != cfg.Rates().Token {
		t.Errorf("rates %+v, estimates %+v", p.Replicas[0].rates, e)
	}
}
