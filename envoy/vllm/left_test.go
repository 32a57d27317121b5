//go:build vllm

package vllm

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
)

// leave has clients leave: in the midst of an answer, streamed and not, at the headers of a stream, which vLLM sends before it
// computes the prompt, and while it computes it, in chunks. What weir expects of the prompt when it is asked again is what was
// computed: exactly where all was, else as far as its rates are true of so long a prompt on a CPU, by a factor of two.
func leave(t *testing.T, r *rig) {
	r.must(t, question{prompt: ids(15000), answer: 8, stream: true}) // which vLLM is slow with the first time
	whole := r.must(t, question{prompt: ids(15000), answer: 8, stream: true}).first
	for _, c := range []struct {
		what     string
		question question
		counted  int     // prompt tokens, by vLLM: of an answer that has not begun, none
		off      float64 // tokens by which what is found may be off what weir expects
	}{
		{"a stream is left", question{prompt: ids(1000), answer: 1300, stream: true}, 1000, chain.BlockTokens},
		{"an answer is left", question{prompt: ids(1000), answer: 1300}, 1000, chain.BlockTokens},
		{"a stream is left at its headers", question{prompt: ids(15000), answer: 1300, stream: true, headers: true}, 0, 2 * chunk},
		{"a stream is left a fifth of the way to its first token", question{prompt: ids(15000), answer: 1300, stream: true, headers: true, after: whole / 5}, 0, 3 * chunk},
	} {
		before := r.counted(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan *answer, 1)
		go func() { ended <- r.ask(ctx, c.question) }()
		if !c.question.headers {
			eventually(t, c.what, func() bool {
				for _, s := range r.vllms {
					if r.of(t, s).Leases == 1 && s.counters(t)["generation_tokens_total"] > before[s.addr]["generation_tokens_total"]+200 { // well into its answer: the prompt is through, however slow weir takes it to be
						return true
					}
				}
				return false
			})
			cancel()
		}
		a := <-ended
		r.settle(t)
		if a.err == nil || a.Served != a.Weir.text("endpoint") {
			t.Errorf("%s: %v, served by %s, weir %v", c.what, a.err, a.Served, a.Weir)
		}
		for _, s := range r.vllms { // what they counted is for the sums
			after := s.counters(t)
			a.usage.Prompt += int(after["prompt_tokens_total"] - before[s.addr]["prompt_tokens_total"])
			a.usage.Output += int(after["generation_tokens_total"] - before[s.addr]["generation_tokens_total"])
		}
		if a.usage.Prompt != c.counted || a.usage.Output >= c.question.answer {
			t.Errorf("%s: vLLM counts %d prompt tokens and %d generated", c.what, a.usage.Prompt, a.usage.Output)
		}
		again := r.must(t, question{prompt: c.question.prompt, answer: 8})
		r.note(c.what+", and asked again", again)
		cachedNear(t, again, c.off)
	}
}

// several asks for eight answers to one prompt, and sends lists of prompts. In its usage and to weir a prompt counts once; vLLM's
// counters have each answer as a request, all but the first to a prompt from the cache. weir reckons with that: it sees nobody
// else there, and what it predicts of these requests is what vLLM counts.
func several(t *testing.T, r *rig) {
	const n, tokens = 8, 500
	before := r.counted(t)
	a := r.must(t, question{prompt: ids(tokens), answer: 100, n: n})
	if a.usage.Prompt != tokens || a.Weir.number("prompt_tokens") != tokens {
		t.Errorf("a prompt of %d tokens is %v for weir, %d in its usage", tokens, a.Weir.number("prompt_tokens"), a.usage.Prompt)
	}
	r.recount(t, before, a)
	if hits := a.usage.Details.Cached; a.usage.Prompt != n*tokens || hits < (n-2)*(tokens-block) || hits >= n*tokens {
		t.Errorf("%d answers to a prompt of %d tokens: vLLM counts %d prompt tokens, %d from its cache", n, tokens, a.usage.Prompt, hits)
	}
	if out := a.Weir.number("expected_output_tokens"); out != n*100 && (out < n*20 || out > n*100) {
		t.Errorf("%d answers of 100 tokens are expected to have %v", n, out)
	}
	predicted, actual := r.truthOf(t, "prompt_tokens")
	sum, others := 0.0, 0.0
	for i := range 24 {
		q := question{prompt: ids(tokens), answer: 100, n: n}
		if i%2 == 1 {
			q = question{prompt: [][]int{ids(tokens), ids(tokens), ids(tokens)}, answer: 100}
		}
		a, foreign := r.watched(t, q)
		sum, others = sum+float64(a.usage.Prompt), max(others, foreign)
	}
	eventually(t, "weir has read what was counted", func() bool {
		_, now := r.truthOf(t, "prompt_tokens")
		return now-actual > 0.7*sum
	})
	p, is := r.truthOf(t, "prompt_tokens")
	if ratio := (p - predicted) / (is - actual); math.Abs(ratio-1) > 0.1 || others > 0 {
		t.Errorf("of %v prompt tokens of several answers each weir compares %v, predicted over actual is %.3f; it sees %v of others", sum, is-actual, ratio, others)
	}
}

// watched asks, and tells how many requests of others weir sees meanwhile.
func (r *rig) watched(t *testing.T, q question) (a *answer, others float64) {
	t.Helper()
	before := r.counted(t)
	ended := make(chan *answer, 1)
	go func() { ended <- r.ask(t.Context(), q) }()
	for a == nil {
		for _, s := range r.vllms {
			others = max(others, r.of(t, s).Foreign)
		}
		select {
		case a = <-ended:
		case <-time.After(50 * time.Millisecond):
		}
	}
	r.settle(t)
	r.whole(t, a)
	if q.n > 0 {
		r.recount(t, before, a)
	}
	return a, others
}

// counted is what each vLLM has counted, by its address.
func (r *rig) counted(t *testing.T) map[string]counters {
	t.Helper()
	all := map[string]counters{}
	for _, s := range r.vllms {
		all[s.addr] = s.counters(t)
	}
	return all
}

// recount makes an answer's usage what the vLLM that served it has counted of it, for the sums.
func (r *rig) recount(t *testing.T, before map[string]counters, a *answer) {
	t.Helper()
	for _, s := range r.vllms {
		if s.addr == a.Served {
			c := s.counters(t)
			a.usage.Prompt = int(c["prompt_tokens_total"] - before[s.addr]["prompt_tokens_total"])
			a.usage.Details.Cached = int(c["prefix_cache_hits_total"] - before[s.addr]["prefix_cache_hits_total"])
		}
	}
}

// truthOf is what weir has predicted, and what has come of it.
func (r *rig) truthOf(t *testing.T, what string) (predicted, actual float64) {
	t.Helper()
	return r.metric(t, `weir_predicted_total{pool="replicas",what="`+what+`"}`), r.metric(t, `weir_actual_total{pool="replicas",what="`+what+`"}`)
}
