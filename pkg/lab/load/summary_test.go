package load

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// TestPercentiles compares with the definition, looked up the slow way.
func TestPercentiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 250; n++ {
		series := make([]time.Duration, n)
		for i := range series {
			series[i] = time.Duration(rng.IntN(n))
		}
		oracle := func(percent int) time.Duration {
			for v := time.Duration(0); ; v++ {
				upto := 0
				for _, s := range series {
					if s <= v {
						upto++
					}
				}
				if upto*100 >= percent*n {
					return v
				}
			}
		}
		want := Percentiles{oracle(50), oracle(99), oracle(100)}
		if got := percentilesOf(series); got != want {
			t.Fatalf("%d values: %v, want %v", n, got, want)
		}
	}
	if got := percentilesOf(nil); got != (Percentiles{}) {
		t.Errorf("no values: %v", got)
	}
}

func TestSummarize(t *testing.T) {
	results := []Result{
		{Kind: Chat, First: 1, Total: 10, Usage: Usage{PromptTokens: 100, CompletionTokens: 5}},
		{Kind: Chat, First: 3, Total: 30, Usage: Usage{PromptTokens: 200, CompletionTokens: 6}},
		{Kind: Chat, First: 99, Late: 7, Err: errors.New("no")},
		{Kind: RAG, First: 5, Total: 50},
	}
	s := Summarize(results, Chat)
	if s.Requests != 3 || s.Errors != 1 || s.First != (Percentiles{1, 3, 3}) || s.Total != (Percentiles{10, 30, 30}) {
		t.Errorf("chat: %+v", s)
	}
	if s.Usage.PromptTokens != 300 || s.Usage.CompletionTokens != 11 {
		t.Errorf("chat: usage %+v", s.Usage)
	}
	if all := Summarize(results, ""); all.Requests != 4 || all.First.Max != 5 {
		t.Errorf("all: %+v", all)
	}
	if late := Lateness(results); late.Max != 7 {
		t.Errorf("lateness %v leaves the failed request out", late)
	}
}

// TestFragments holds that how a stream arrives in pieces does not matter.
func TestFragments(t *testing.T) {
	var r Result
	calls := 0
	br := bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(answerText)), maxLine)
	last, err := r.events(br, func() { calls++; r.First = 42 })
	if err != nil || r.First != 42 || calls != 1 || !strings.Contains(string(last), `"prompt_tokens":9`) {
		t.Errorf("first %v after %d calls, last event %q, %v", r.First, calls, last, err)
	}
}
