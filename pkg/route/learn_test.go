package route

import (
	"math"
	"testing"

	"github.com/weirproxy/weir/pkg/pool"
)

// serveTokens sends n requests, one a second, to a replica whose prompts have so many tokens to one of four bytes, and which
// counts them right away.
func serveTokens(r *Router, from float64, n int, scale float64, q func(i int) *Request) (prompt float64) {
	for i := range n {
		now := at(from + float64(i))
		d := r.Route(now, q(i))
		d.Status = 200
		prompt += math.Round(d.plain * scale)
		now = now.Add(900e6)
		r.Done(now, d, Answered)
		r.Observe(now, endpoint(0), pool.Sample{
			At: now, HasRunning: true, HasWaiting: true, Prompt: prompt, HasPrompt: true, Tokens: prompt, HasTokens: true,
			TTFT: pool.Summary{Count: float64(i + 1), Sum: 1, Has: true},
		})
	}
	return prompt
}

// What is learned of a model's texts is in a prompt's tokens, in what of them is cached, and nowhere in its chain; another
// model and prompts of token ids are left as they are.
func TestPromptTokensAreLearned(t *testing.T) {
	r := newRouter(1, Default())
	before := r.Route(at(0), ask(1, 2000))
	r.Done(at(0.1), before, Answered)
	serveTokens(r, 1, 200, 2, func(i int) *Request { return ask(10+i, 500) })
	first := r.Route(at(300), ask(1, 2000))
	first.Status = 200
	r.Done(at(301), first, Answered)
	again := r.Route(at(302), ask(1, 2000))
	defer r.Done(at(303), again, Answered)
	if got := float64(again.Prompt.Tokens) / float64(before.Prompt.Tokens); math.Abs(got-2) > 0.05 {
		t.Errorf("%v times as many tokens as by bytes alone, want 2", got)
	}
	if len(again.Prompt.Chain) != len(before.Prompt.Chain) || again.Prompt.Chain[0] != before.Prompt.Chain[0] {
		t.Error("the chain is another")
	}
	if got := again.Choice.Cached / float64(again.Prompt.Tokens); got < 0.9 || got > 1 || again.Choice.Load.Uncached > 300 {
		t.Errorf("of a prompt seen before %v is cached, and %v tokens are charged", got, again.Choice.Load.Uncached)
	}
	ids := r.Route(at(302), &Request{Path: "/v1/completions", Body: []byte(`{"model":"m","prompt":[1,2,3,4,5]}`)})
	defer r.Done(at(303), ids, Answered)
	if ids.Prompt.Tokens != 5 || !ids.Prompt.Exact || ids.text != nil {
		t.Errorf("five token ids count as %d", ids.Prompt.Tokens)
	}
	if all := r.Estimates(at(303)); len(all.Texts) == 0 || math.Abs(all.BytesPerToken-2) > 0.1 {
		t.Errorf("shown as %+v, %v bytes a token", all.Texts, all.BytesPerToken)
	}
}
