package pool

import (
	"math"
	"testing"
)

// The expected answer is the policy's until replicas tell, then follows what they finished: each request by a fiftieth.
func TestOutputFollowsTheReplicas(t *testing.T) {
	p := New("p", []string{"a", "b"}, plain)
	a, b := p.Replicas[0], p.Replicas[1]
	start := p.Output()
	if start != float64(p.Config.OutputTokens) {
		t.Fatalf("before any scrape %v, want %d", start, p.Config.OutputTokens)
	}
	now := 0.0
	tell := func(r *Replica, answers, tokens float64, has bool) {
		now++
		p.Observe(at(now), r, Sample{At: at(now), Answers: answers, AnswerTokens: tokens, HasAnswers: has})
	}
	same := func(want float64, what string) {
		t.Helper()
		if got := p.Output(); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	tell(a, 1000, 1e6, true)
	same(start, "the first scrape has no difference")
	tell(a, 1000, 1e6, true)
	same(start, "nobody has finished")
	tell(a, 1001, 1e6+500, true)
	same(start+0.02*(500-start), "one of 500")
	want := p.Output()
	tell(b, 5, 10, true)
	tell(b, 0, 0, true)
	same(want, "a restart")
	tell(a, 0, 0, false)
	tell(a, 1001+1000, 1e6+500+1000*700, true)
	same(700+(want-700)*math.Pow(0.98, 1000), "a thousand of 700, over a gap")
	tell(a, 1e6, 1e15, true)
	if got := p.Output(); got > float64(p.Config.KVTokens) {
		t.Errorf("an answer of %v tokens is longer than the memory", got)
	}
}
