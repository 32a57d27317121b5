//go:build vllm

package vllm

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// prediction is something that the decision record tells of a request before it is sent, and what came of it: a row of the table.
type prediction struct {
	what      string
	predicted func(decision) float64
	actual    func(a *answer) (v float64, ok bool) // ok: of this request there is something to tell
}

func field(name string) func(decision) float64 {
	return func(r decision) float64 { return r.number(name) }
}

// note keeps what a table tells of some requests: which part of their prompts weir expected in vLLM's cache, and which was there.
func (r *rig) note(what string, answers ...*answer) {
	var matched, cached, prompt, told float64
	for _, a := range answers {
		matched += a.Weir.number("matched_tokens")
		prompt += a.Weir.number("prompt_tokens")
		cached += float64(a.usage.Details.Cached)
		told += float64(a.usage.Prompt)
	}
	r.notes = append(r.notes, fmt.Sprintf("%-52s %9d %9.3f %9.3f", what, len(answers), matched/prompt, cached/told))
}

var predictions = []prediction{
	{"prompt tokens", field("prompt_tokens"), func(a *answer) (float64, bool) { return float64(a.usage.Prompt), a.text() }},
	{"hit tokens", field("matched_tokens"), func(a *answer) (float64, bool) { return float64(a.usage.Details.Cached), a.text() }},
	{"hits/prompt tokens", func(r decision) float64 { return r.number("matched_tokens") / r.number("prompt_tokens") }, func(a *answer) (float64, bool) {
		return float64(a.usage.Details.Cached) / float64(a.usage.Prompt), a.text()
	}},
	{"tokens to compute", field("uncached_tokens"), func(a *answer) (float64, bool) { return float64(a.usage.Prompt - a.usage.Details.Cached), a.text() }},
	{"output tokens", field("expected_output_tokens"), func(a *answer) (float64, bool) { return float64(a.usage.Output), true }},
	{"wait at the gate, ms", field("predicted_wait_ms"), func(a *answer) (float64, bool) {
		return a.Weir.number("wait_ms"), a.Weir.number("predicted_wait_ms") > 0
	}},
	{"TTFT after it, ms", field("predicted_ttft_ms"), func(a *answer) (float64, bool) {
		return a.first.Seconds()*1000 - a.Weir.number("wait_ms"), a.first > 0
	}},
}

// text reports whether weir must guess how many tokens the prompt has.
func (a *answer) text() bool {
	_, text := a.asked.prompt.(string)
	return text || a.asked.chat != nil
}

// printErrors prints each prediction's errors, |predicted/actual - 1|, over the answers that came whole; the ratio of both sums; and how many
// were predicted that did not come at all.
func (r *rig) printErrors() {
	fmt.Printf("\n%-22s %9s %9s %9s %11s %8s\n", "prediction", "requests", "median", "p90", "sum/actual", "in vain")
	for _, row := range predictions {
		var errs []float64
		var sum, actual float64
		vain := 0
		for _, a := range r.asked {
			v, ok := row.actual(a)
			if !ok || !a.whole() {
				continue
			}
			p := row.predicted(a.Weir)
			sum, actual = sum+p, actual+v
			if v > 0 {
				errs = append(errs, math.Abs(p/v-1))
			} else if p > 0 {
				vain++
			}
		}
		if sum == 0 {
			fmt.Printf("%-22s not told by weir\n", row.what)
			continue
		}
		slices.Sort(errs)
		at := func(q float64) float64 { return 100 * errs[int(q*float64(len(errs)-1))] }
		fmt.Printf("%-22s %9d %8.1f%% %8.1f%% %11.3f %8d\n", row.what, len(errs), at(0.5), at(0.9), sum/actual, vain)
	}
	fmt.Printf("\n%-52s %9s %9s %9s\n%s\n\n", "share of the prompt in the cache", "requests", "expected", "found", strings.Join(r.notes, "\n"))
}
