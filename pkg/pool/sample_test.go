package pool

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/prefix"
)

func TestRestart(t *testing.T) {
	tokens := func(n float64) Sample { return Sample{Tokens: n, HasTokens: true} }
	ended := func(n float64) Sample { return Sample{Answers: n, AnswerTokens: 10 * n, HasAnswers: true} }
	began := func(s Sample, at float64) Sample { s.Started, s.HasStarted = at, true; return s }
	const boot = 1.7959695389e+09
	for _, s := range []struct {
		name     string
		samples  []Sample
		restarts int
		held     int // of three blocks computed before the last sample
	}{
		{"first", []Sample{tokens(500)}, 0, 3},
		{"same", []Sample{tokens(500), tokens(500)}, 0, 3},
		{"grows", []Sample{tokens(500), tokens(501)}, 0, 3},
		{"back", []Sample{tokens(500), tokens(499)}, 1, 0},
		{"back to zero", []Sample{tokens(500), tokens(0)}, 1, 0},
		{"missing is not zero", []Sample{tokens(500), {}}, 0, 3},
		{"back behind a gap", []Sample{tokens(500), {}, tokens(100)}, 1, 0},
		{"on behind a gap", []Sample{tokens(500), {}, tokens(600)}, 0, 3},
		{"answers go back", []Sample{ended(5), ended(4)}, 1, 0},
		{"answers go back behind a gap", []Sample{ended(5), tokens(1), ended(4)}, 1, 0},
		{"started later, counted more", []Sample{began(tokens(500), boot), began(tokens(501), boot+30)}, 1, 0},
		{"started later, counters missing", []Sample{began(tokens(500), boot), began(Sample{}, boot+30)}, 1, 0},
		{"and counted less when they are there", []Sample{began(tokens(500), boot), began(Sample{}, boot+30), began(tokens(3), boot+30)}, 1, 3},
		{"started later behind a gap", []Sample{began(tokens(500), boot), tokens(501), began(tokens(502), boot+30)}, 1, 0},
		{"started earlier: another process", []Sample{began(tokens(500), boot), began(tokens(501), boot-30)}, 1, 0},
		{"told for the first time", []Sample{tokens(500), began(tokens(501), boot)}, 0, 3},
		{"the clock was set", []Sample{began(tokens(500), boot), began(tokens(501), boot+1), began(tokens(502), boot)}, 0, 3},
		{"twice", []Sample{began(tokens(500), boot), began(tokens(700), boot+30), began(tokens(900), boot+60)}, 2, 0},
	} {
		r := New("p", []string{"a"}, plain).Replicas[0]
		c := chain.Chain{1, 2, 3}
		for i, sample := range s.samples {
			r.Index.Unpin(c, r.Index.Pin(c, 0), prefix.All)
			sample.At = at(float64(i))
			r.Observe(sample.At, sample)
		}
		if got := r.Index.Match(c); r.restarts != s.restarts || got != s.held {
			t.Errorf("%s: %d restarts, %d blocks held; want %d and %d", s.name, r.restarts, got, s.restarts, s.held)
		}
		if s.restarts > 0 && !r.Cold() {
			t.Errorf("%s: not cold", s.name)
		}
	}
}

// A replica that is cold by its restart stays so when its counters are read for the first time after it.
func TestColdByItsStart(t *testing.T) {
	r := New("p", []string{"a"}, plain).Replicas[0]
	r.Observe(at(0), Sample{At: at(0), Started: 1e9, HasStarted: true})
	r.Observe(at(1), Sample{At: at(1), Started: 2e9, HasStarted: true})
	r.Observe(at(2), Sample{At: at(2), Started: 2e9, HasStarted: true, Tokens: 500, HasTokens: true})
	if !r.Cold() {
		t.Error("taken for warm by the tokens of others since")
	}
}

// vrouter#197: a reset now and then zeroed live counters. Restarts, scrapes of every kind and failures leave what weir sent as
// it is; the releases alone take it back, each once.
func TestScrapesNeverTouchLeases(t *testing.T) {
	p := New("p", []string{"a"}, plain)
	r := p.Replicas[0]
	const n = 50
	leases := make([]Lease, n)
	for i := range leases {
		p.Charge(at(0), &leases[i], r, Load{Prompt: 1000, Uncached: 0, Output: 100})
	}
	check := func(when string, live int) {
		t.Helper()
		if s := r.Stats(at(20)); s.Leases != live || math.Abs(s.PendingTokens-float64(100*live)) > 1e-6 {
			t.Errorf("%s: %d leases, %v tokens pending; want %d and %d", when, s.Leases, s.PendingTokens, live, 100*live)
		}
	}
	for i := range 20 {
		s := Sample{At: at(float64(i)), Tokens: float64(1000 * (i % 3)), HasTokens: i%4 != 0, Started: float64(1000 * (i / 5)), HasStarted: i%2 == 0,
			HasRunning: true, HasWaiting: true, KV: 0.1, HasKV: i%3 == 0, HasAnswers: true}
		p.Observe(s.At, r, s)
		r.Fail(s.At)
		if i%5 == 0 {
			r.Refuse(s.At)
		}
		check(fmt.Sprint("after scrape ", i), n)
	}
	if r.restarts == 0 {
		t.Error("no restart among the scrapes")
	}
	for i := range leases {
		leases[i].Release(at(20), i%2 == 0)
		leases[i].Release(at(20), true)
		check("after a release", n-1-i)
	}
}

// What a replica counted from scrape to scrape: over a gap, not over a restart, and never out of a counter that went back.
func TestLately(t *testing.T) {
	p := New("p", []string{"a"}, plain)
	r := p.Replicas[0]
	now := 0.0
	tell := func(s Sample, want string) {
		t.Helper()
		now++
		s.At = at(now)
		p.Observe(at(now), r, s)
		told := r.Stats(at(now)).Scrape
		b, err := json.Marshal([]any{told.TTFT, told.InterToken, told.Queue, told.HitShare, told.Preemptions, told.Started})
		if err != nil || string(b) != want {
			t.Errorf("scrape %v: %s, %v; want %s", now, b, err, want)
		}
	}
	all := func(started, n float64) Sample {
		return Sample{
			Tokens: n, HasTokens: true, Started: started, HasStarted: true, Preemptions: n, HasPreemptions: true,
			TTFT: Summary{n, n / 2, true}, InterToken: Summary{10 * n, n / 4, true}, Queue: Summary{n, n / 8, true}, Hits: Summary{100 * n, 75 * n, true},
		}
	}
	const one, two = `"1970-01-12T13:46:40.5Z"`, `"1970-01-24T03:33:20Z"`
	tell(all(1e6+0.5, 100), `[null,null,null,null,null,`+one+`]`)
	tell(all(1e6+0.5, 108), `[0.5,0.025,0.125,0.75,8,`+one+`]`)
	tell(all(1e6+0.5, 108), `[null,null,null,null,0,`+one+`]`)
	tell(Sample{}, `[null,null,null,null,null,`+one+`]`)
	tell(all(1e6+0.5, 116), `[0.5,0.025,0.125,0.75,8,`+one+`]`)
	tell(all(2e6, 200), `[null,null,null,null,null,`+two+`]`)
	tell(all(2e6, 204), `[0.5,0.025,0.125,0.75,4,`+two+`]`)
	back := all(2e6, 300)
	back.Queue = Summary{203, 30, true}
	tell(back, `[0.5,0.025,null,0.75,96,`+two+`]`)
	less := all(2e6, 400)
	less.TTFT.Sum, less.Preemptions = 1, 299
	tell(less, `[null,0.025,0.10152284263959391,0.75,null,`+two+`]`)
	if s := r.Stats(at(now)); s.Restarts != 1 {
		t.Errorf("%d restarts, want 1", s.Restarts)
	}
}
