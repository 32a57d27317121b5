package pool

import (
	"math"
	"testing"
)

func truthOf(p *Pool, w What) TruthStats { return p.Truth()[w] }

// What is predicted of requests is laid beside the counters: tokens whose scale is learned, hits of which half are there, and
// first tokens that take longer than the formula says, until that is learned.
func TestTruthIsTold(t *testing.T) {
	s := newServer(1)
	s.cached, s.slow = 0.4, 0.5
	for range 1000 {
		s.second([]string{"m"}, []float64{1.5}, 8)
	}
	for w, want := range map[What]float64{PromptTokens: 1, CachedTokens: 2, FirstToken: 1} {
		got := truthOf(s.p, w)
		if got.Ratio == nil || math.Abs(*got.Ratio/want-1) > 0.06 || math.Abs(got.Predicted/got.Actual/want-1) > 0.1 {
			t.Errorf("%v: %+v, want a ratio of %v", w, got, want)
		}
	}
	var l Lease
	s.p.Charge(at(s.now), &l, s.r, Load{Prompt: 1, Uncached: 1})
	if got := l.First() - l.formula; math.Abs(got-0.5) > 0.05 {
		t.Errorf("the mean request takes %v s beyond the formula, want 0.5", got)
	}
	if got := truthOf(s.p, GateWait); got.Ratio != nil {
		t.Errorf("nobody was held, and it is told as %+v", got)
	}
}

// While others send, and after more first tokens than requests, nothing is compared.
func TestTruthIsOfOwnRequests(t *testing.T) {
	s := newServer(2)
	for range 100 {
		s.second([]string{"m"}, []float64{1}, 5)
	}
	was := truthOf(s.p, PromptTokens).Actual
	s.foreign = 10_000
	for range 50 {
		s.second([]string{"m"}, []float64{1}, 5)
	}
	if got := truthOf(s.p, PromptTokens).Actual; got != was || was == 0 {
		t.Errorf("beside others %v tokens are compared, before %v", got, was)
	}
	s = newServer(3)
	for range 100 {
		s.firsts.Count += 3
		s.second([]string{"m"}, []float64{1}, 5)
	}
	if got := truthOf(s.p, PromptTokens).Actual; got != 0 {
		t.Errorf("%v tokens are compared where others are in the counts", got)
	}
}

// The sums never go back, though what was predicted of a request is taken back when it turns out to be refused.
func TestTruthNeverGoesBack(t *testing.T) {
	s := newServer(4)
	last, back := 0.0, 0
	for i := range 400 {
		s.second([]string{"m"}, []float64{1}, 5)
		var l Lease
		if i%20 == 10 {
			s.p.Charge(at(s.now), &l, s.r, Load{Prompt: 5000, Uncached: 1, Text: s.p.Text("m"), Plain: 5000})
		}
		s.second([]string{"m"}, []float64{1}, 5)
		s.p.End(at(s.now), &l, Kind{}, false, true)
		was := s.p.truth.all[PromptTokens].predicted
		s.second([]string{"m"}, []float64{1}, 5)
		l.Release(at(s.now), false)
		if s.p.truth.all[PromptTokens].predicted < was {
			back++
		}
		got := truthOf(s.p, PromptTokens).Predicted
		if got < last {
			t.Fatalf("%v after %v", got, last)
		}
		last = got
	}
	if got := truthOf(s.p, PromptTokens); math.Abs(got.Predicted/got.Actual-1) > 0.1 || back == 0 {
		t.Errorf("refused requests are in what was predicted: %+v; taken back %d times", got, back)
	}
}

func TestWaitsAreTold(t *testing.T) {
	p := New("p", []string{"a"}, plain)
	for _, w := range [][2]float64{{2, 1}, {0, 5}, {math.NaN(), 1}, {1, math.NaN()}, {4, 3}} {
		p.Waited(w[0], w[1])
	}
	if got := truthOf(p, GateWait); got.Predicted != 6 || got.Actual != 4 || math.Abs(*got.Ratio-1.5) > 0.01 || got.What != "gate_wait_seconds" {
		t.Errorf("%+v", got)
	}
}
