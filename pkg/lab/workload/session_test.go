package workload

import (
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// turnsOf follows each session of a source that answers in the given time.
func turnsOf(t *testing.T, name string, p Params, takes time.Duration) (sessions [][]*Request) {
	t.Helper()
	s, err := New(name, p.Rate, p.Seed, p.Replicas)
	if err != nil {
		t.Fatal(err)
	}
	for r, ok := s.Next(); ok; r, ok = s.Next() {
		var turns []*Request
		for r != nil {
			turns = append(turns, r)
			if r.Then == nil {
				break
			}
			r = r.Then(r.At + takes)
		}
		sessions = append(sessions, turns)
	}
	return sessions
}

// TestTurnsExtendTheirHistory: a turn's prompt is the last one's, its answer, and something new.
func TestTurnsExtendTheirHistory(t *testing.T) {
	for _, name := range []string{"W6-chat", "W6-code"} {
		later, pauses := 0, 0.0
		for _, turns := range turnsOf(t, name, Params{Rate: 5, Seed: 1}, time.Second) {
			for i, r := range turns[1:] {
				before := turns[i]
				if known := (before.Prompt + before.Output) / step.BlockTokens; len(before.Blocks) != known {
					t.Fatalf("%s: a turn of %d and %d tokens with a successor has %d blocks", name, before.Prompt, before.Output, len(before.Blocks))
				}
				if r.Prompt <= before.Prompt+before.Output || !slices.Equal(r.Blocks[:len(before.Blocks)], before.Blocks) {
					t.Fatalf("%s: turn %d does not extend the one before", name, i+1)
				}
				if r.At <= before.At+time.Second {
					t.Fatalf("%s: a turn comes before the answer", name)
				}
				pauses += (r.At - before.At - time.Second).Seconds()
				later++
			}
			if last := turns[len(turns)-1]; last.Then == nil && len(last.Blocks) != last.Prompt/step.BlockTokens {
				t.Fatalf("%s: a last turn names blocks of its answer", name)
			}
		}
		if later < 500 {
			t.Errorf("%s: %d later turns", name, later)
		}
		near(t, name+" pause", pauses/float64(later), map[string]float64{"W6-chat": 30, "W6-code": 8.1}[name], 0.1)
	}
}

// TestSessionsDoNotDependOnTheAnswersTime: a slow router gets the same sessions, as far as they come.
func TestSessionsDoNotDependOnTheAnswersTime(t *testing.T) {
	p := Params{Rate: 5, Seed: 9}
	fast, slow := turnsOf(t, "W6", p, 100*time.Millisecond), turnsOf(t, "W6", p, 20*time.Second)
	if len(fast) != len(slow) {
		t.Fatalf("%d and %d sessions", len(fast), len(slow))
	}
	shorter := 0
	for i := range fast {
		for k := range min(len(fast[i]), len(slow[i])) {
			if f, s := fast[i][k], slow[i][k]; f.Prompt != s.Prompt || f.Output != s.Output || !slices.Equal(f.Blocks, s.Blocks) {
				t.Fatalf("session %d, turn %d: another text", i, k)
			}
		}
		if len(slow[i]) < len(fast[i]) {
			shorter++
		}
	}
	if shorter == 0 {
		t.Error("no session was cut off by the end: the comparison is vain")
	}
}

// TestSessionsAreUnderWay: the rate is right from the start, and early turns have a history.
func TestSessionsAreUnderWay(t *testing.T) {
	for _, name := range []string{"W6", "W6-chat", "W6-code", "W9"} {
		rs := all(t, name, Params{Rate: 20, Seed: 1})
		var minutes [10]float64
		for _, r := range rs {
			minutes[int(r.At/time.Minute)]++
		}
		for m, n := range minutes {
			near(t, name+" requests in a minute", n/60, 20, 0.2)
			if m == 0 {
				near(t, name+" first minute", n/60, float64(len(rs))/600, 0.15)
			}
		}
	}
}
