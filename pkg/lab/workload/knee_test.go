package workload

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// TestKneeByHand: cases in which one thing alone decides.
func TestKneeByHand(t *testing.T) {
	none := func(float64) float64 { return 0 }
	p := step.Profile{Base: 10 * time.Millisecond, PerSeq: time.Millisecond, PerPrefill: 100 * time.Microsecond,
		KVTokens: 1 << 30, MaxBatch: 8192, MaxSeqs: 1 << 10}
	for _, c := range []struct {
		name  string
		d     demand
		kv    int
		seqs  int
		rate  float64
		binds string
	}{
		// Steps are at most a batch of 8,192 tokens: 0.8192 s of prefill and 0.01 s of base.
		{"prefill", demand{Uncached: 8192, Output: 1e-9, Held: none}, 1 << 30, 1 << 10, 1 / 0.8292, "prefill"},
		// 100 of 101 seats decode: 100 tokens each 10 ms + 100 x 1 ms.
		{"seats", demand{Output: 50, Held: none}, 1 << 30, 101, 100 / 0.110 / 50, "decode"},
		// Memory for 4 decoding and one more: 4 tokens each 14 ms. A tenth more memory is a tenth more rate,
		// a tenth less step time too, nearly: memory is named first where Base is most of the step.
		{"memory", demand{Output: 50, Held: func(n float64) float64 { return 1000 * n }}, 5000, 1 << 10, 4 / 0.014 / 50, "decode"},
	} {
		p.KVTokens, p.MaxSeqs = c.kv, c.seqs
		rate, binds := c.d.Knee(p)
		near(t, c.name, rate, c.rate, 0.001)
		if binds != c.binds {
			t.Errorf("%s binds, want %s", binds, c.binds)
		}
	}
	p.Base, p.PerSeq, p.KVTokens = time.Millisecond, 0, 2000
	if _, binds := (demand{Output: 50, Held: func(n float64) float64 { return 1000 * n }}).Knee(p); binds != "KV" {
		t.Errorf("a single seat: %s binds, want KV", binds)
	}
}

// TestKneeAgainstTheStepModel: a replica keeps up at 0.85 of the knee and falls behind at 1.15.
func TestKneeAgainstTheStepModel(t *testing.T) {
	for _, c := range []struct{ workload, profile string }{{"W10", "8B"}, {"W3-fresh", "32B"}, {"W7-0", "32B"}} {
		p := mustProfile(c.profile)
		measure, err := New(c.workload, 1, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		traffic, err := Measure(measure, Pool{p, 1})
		if err != nil {
			t.Fatal(err)
		}
		knee := traffic.Routed.Knee
		if low := waiting(t, p, c.workload, 0.85*knee); low > 30 {
			t.Errorf("%s on one %s: at 0.85 of the knee, %.2f/s, %d wait in the end", c.workload, c.profile, knee, low)
		}
		if high := waiting(t, p, c.workload, 1.15*knee); high < 30 {
			t.Errorf("%s on one %s: at 1.15 of the knee, %.2f/s, %d wait in the end", c.workload, c.profile, knee, high)
		}
	}
}

// waiting is the queue of one replica after ten minutes.
func waiting(t *testing.T, p step.Profile, name string, rate float64) int {
	t.Helper()
	s, err := New(name, rate, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	r, err := step.New(p)
	if err != nil {
		t.Fatal(err)
	}
	for q, ok := s.Next(); ok; q, ok = s.Next() {
		r.Advance(q.At)
		if err := r.Submit(q.At, &step.Seq{Hashes: q.Blocks, Prompt: q.Prompt, Output: q.Output}); err != nil {
			t.Fatal(err)
		}
	}
	st := r.Stats()
	return st.Waiting
}
