package admin

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
)

// What is learned of a pool, and what is predicted against what was, is on the page from the start; by class only what ended.
func TestLearnedMetrics(t *testing.T) {
	r := router("llm", 1)
	a := newAdmin(r)
	got := values(scrape(t, a))
	for _, what := range []string{"gate_wait_seconds", "prompt_tokens", "cached_tokens", "output_tokens", "first_token_seconds"} {
		for _, name := range []string{"weir_predicted_total", "weir_actual_total"} {
			if k := name + " pool=llm what=" + what; !has(got, k) || got[k] != 0 {
				t.Errorf("%s is %v at the start", k, got[k])
			}
		}
	}
	if got["weir_bytes_per_token pool=llm"] != 4 || has(got, "weir_expected_output_tokens class=interactive pool=llm") {
		t.Errorf("before any request: %v", got)
	}
	now := time.Now()
	for i := range 100 {
		d := r.Route(now, &route.Request{Path: "/v1/chat/completions", Body: []byte(chatBody)})
		d.Status = 200
		now = now.Add(time.Second)
		r.Done(now, d, route.Answered)
		n := float64(i + 1)
		r.Observe(now, "10.0.0.0:8000", pool.Sample{
			At: now, HasRunning: true, HasWaiting: true, Prompt: 40 * n, HasPrompt: true, TTFT: pool.Summary{Count: n, Sum: n / 10, Has: true},
			Answers: n, AnswerTokens: 100 * n, HasAnswers: true,
		})
	}
	got = values(scrape(t, a))
	if p, q := got["weir_predicted_total pool=llm what=prompt_tokens"], got["weir_actual_total pool=llm what=prompt_tokens"]; p <= 0 || q < 3900 || q > 4000 {
		t.Errorf("predicted %v, actual %v prompt tokens, want 4,000", p, q)
	}
	if b := got["weir_bytes_per_token pool=llm"]; b >= 4 {
		t.Errorf("%v bytes a token", b)
	}
	live, ended := got["weir_little_live pool=llm"], got["weir_little_ended pool=llm"]
	if d := got["weir_little_difference pool=llm"]; live <= 0 || ended <= 0 || d != live-ended {
		t.Errorf("%v live, %v ended, difference %v", live, ended, d)
	}
	if n := got["weir_pool_replicas_needed pool=llm"]; n != 1 {
		t.Errorf("%v replicas are needed for one request at a time", n)
	}
	if o := got["weir_expected_output_tokens class=interactive pool=llm"]; o < 90 || o > 110 {
		t.Errorf("an interactive answer is expected to have %v tokens, want 100", o)
	}
}

// Models of one class count by their answers.
func TestOutputByClass(t *testing.T) {
	got := byClass([]pool.OutputStats{{Class: "a", Expected: 100, Answers: 3}, {Class: "a", Model: "m", Expected: 500, Answers: 1}, {Class: "b", Expected: 7, Answers: 9}})
	if len(got) != 2 || got["a"] != 200 || got["b"] != 7 {
		t.Errorf("%v", got)
	}
}
