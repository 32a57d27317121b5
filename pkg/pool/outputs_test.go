package pool

import (
	"fmt"
	"math"
	"testing"
)

// answering is a replica that gives each live request a token every gap seconds, from its predicted first token on, times off.
// A second at a time.
type answering struct {
	p               *Pool
	r               *Replica
	now             float64
	live            []*talk
	gap, off        float64
	answers, tokens float64 // counters
	gaps            Summary
}

type talk struct {
	lease Lease
	kind  Kind
	n     float64 // tokens
	ends  float64
}

func newAnswering(gap, off float64) *answering {
	p := New("p", []string{"a"}, plain)
	return &answering{p: p, r: p.Replicas[0], gap: gap, off: off, gaps: Summary{Has: true}}
}

// say sends a request of a kind whose answer has n tokens.
func (a *answering) say(k Kind, n float64) {
	q := &talk{kind: k, n: n}
	a.p.Charge(at(a.now), &q.lease, a.r, Load{Prompt: 10, Uncached: 10, Output: a.p.OutputOf(k)})
	q.ends = a.now + q.lease.first + a.off*(n-1)*a.gap
	a.live = append(a.live, q)
}

func (a *answering) second() {
	until := a.now + 1
	keep := a.live[:0]
	for _, q := range a.live {
		if q.ends >= until {
			keep = append(keep, q)
			continue
		}
		a.answers++
		a.tokens += q.n
		a.p.End(at(q.ends), &q.lease, q.kind, true, false)
		q.lease.Release(at(q.ends), true)
	}
	a.live, a.now = keep, until
	a.gaps.Count += 1 / a.gap
	a.gaps.Sum++
	a.p.Observe(at(until), a.r, Sample{
		At: at(until), HasRunning: true, HasWaiting: true, InterToken: a.gaps, Answers: a.answers, AnswerTokens: a.tokens, HasAnswers: true,
	})
}

// Each kind's answers are known by how long they take, also where tokens come slower than the replica says, and as its pace
// changes.
func TestOutputsByKind(t *testing.T) {
	chat, batch := Kind{"m", "interactive"}, Kind{"m", "bulk"}
	for _, off := range []float64{1, 1.5} {
		a := newAnswering(0.02, off)
		if a.p.OutputOf(chat) != a.p.Output() {
			t.Fatal("before any answer it is not the pool's")
		}
		for i := range 600 {
			a.gap = 0.02 + 0.01*float64(i/50%2)
			a.say(chat, 100)
			a.say(chat, 300)
			a.say(batch, 800)
			a.second()
		}
		for k, want := range map[Kind]float64{chat: 200, batch: 800, {"m", "unknown"}: a.p.Output()} {
			if got := a.p.OutputOf(k); math.Abs(got/want-1) > 0.1 {
				t.Errorf("slower by %v: %v are expected to have %v tokens, want %v", off, k, got, want)
			}
		}
		all := a.p.Outputs(at(a.now))
		for i := range all {
			all[i].Rank()
		}
		if len(all) != 2 || all[0].Class != "interactive" || math.Abs(all[0].P50/100-1) > 0.15 || math.Abs(all[0].P90/300-1) > 0.15 || all[0].Answers < 1000 || all[0].AgeSeconds > 5 {
			t.Errorf("slower by %v: shown as %+v", off, all)
		}
	}
}

// A client that holds its answer for an hour, and one that gets none, change little; kinds are bounded.
func TestOutputsAreBounded(t *testing.T) {
	a := newAnswering(0.02, 1)
	k := Kind{"m", "interactive"}
	for range 100 {
		a.say(k, 200)
		a.second()
	}
	was := a.p.OutputOf(k)
	var l Lease
	a.p.Charge(at(a.now), &l, a.r, Load{Prompt: 10, Uncached: 10})
	a.p.End(at(a.now), &l, k, false, true)
	l.Release(at(a.now), false)
	a.p.Charge(at(a.now), &l, a.r, Load{Prompt: 10, Uncached: 10})
	a.p.End(at(a.now+3600), &l, k, true, false)
	l.Release(at(a.now+3600), true)
	if got := a.p.OutputOf(k); got > 2*was || got < was {
		t.Errorf("one slow reader: %v tokens, before %v", got, was)
	}
	for i := range 2 * maxKinds {
		for range kindLeast {
			a.p.outputs.learn(at(0), Kind{fmt.Sprint(i), "interactive"}, 1, 100)
		}
	}
	p := New("p", []string{"a"}, plain)
	for range 100 {
		p.outputs.learn(at(0), k, 1, 5000)
	}
	if got := p.OutputOf(k); got != p.Output() {
		t.Errorf("%v tokens are expected where no replica counts them, the policy has %v", got, p.Output())
	}
	if n := len(a.p.Outputs(at(0))); n != maxKinds {
		t.Errorf("%d kinds, want %d", n, maxKinds)
	}
}
