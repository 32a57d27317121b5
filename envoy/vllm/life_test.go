//go:build vllm

package vllm

import (
	"math"
	"net/http"
	"testing"

	"github.com/weirproxy/weir/envoy"
)

// sums holds what all answers say they took, by the vLLM that Envoy says served, against that vLLM's counters, and against what
// weir has counted. Nothing else was sent there, so all must be equal.
func sums(t *testing.T, r *rig) {
	r.settle(t)
	var prompt, matched, answered float64
	for _, s := range r.vllms {
		sum := counters{}
		for _, a := range r.asked {
			if a.Served != s.addr {
				continue
			}
			sum["prompt_tokens_total"] += float64(a.usage.Prompt)
			sum["prefix_cache_hits_total"] += float64(a.usage.Details.Cached)
			sum["generation_tokens_total"] += float64(a.usage.Output)
			if a.whole() {
				sum["request_generation_tokens_count"] += float64(a.asked.answers())
				sum["request_generation_tokens_sum"] += float64(a.usage.Output)
			}
		}
		c := s.counters(t)
		for name, want := range sum {
			if c[name] != want || want == 0 {
				t.Errorf("%s: %s is %v, the answers make %v", s.name, name, c[name], want)
			}
		}
		if p := r.of(t, s); p.Restarts != 0 || p.Down || p.Foreign != 0 {
			t.Errorf("%s: %+v", s.name, p)
		}
	}
	for _, a := range r.asked {
		prompt += a.Weir.number("prompt_tokens")
		matched += a.Weir.number("matched_tokens")
		if a.status != 0 {
			answered++
		}
	}
	for series, want := range map[string]float64{
		`weir_prompt_tokens_sum{pool="replicas"}`:                                        prompt,
		`weir_matched_tokens_total{pool="replicas"}`:                                     matched,
		`weir_requests_total{class="interactive",outcome="answered",pool="replicas"}`:    answered,
		`weir_requests_total{class="interactive",outcome="unanswered",pool="replicas"}`:  float64(len(r.asked)) - answered,
		`weir_served_total{match="first",pool="replicas"}`:                               answered,
		`weir_served_total{match="other",pool="replicas"}`:                               0,
		`weir_scrape_failures_total{endpoint="` + r.vllms[0].addr + `",pool="replicas"}`: 0,
		`weir_scrape_failures_total{endpoint="` + r.vllms[1].addr + `",pool="replicas"}`: 0,
	} {
		if got := r.metric(t, series); math.Abs(got-want) > 1e-9*want { // what is matched is no whole number, added up in another order
			t.Errorf("%s is %v, of what was asked %v", series, got, want)
		}
	}
	if s := r.vllms[0]; *recording {
		record(t, "vllm-0.32.0-metrics", s.page(t), r.truth(s))
	}
}

// restart kills a vLLM whose cache is warm, asks while it is away, and wants weir to know that it comes back cold.
func restart(t *testing.T, r *rig) {
	prompt, lost := ids(6000), ids(3000)
	first := r.must(t, question{prompt: prompt, answer: 8})
	gone, other := r.vllms[0], r.vllms[1]
	if first.Served != gone.addr {
		gone, other = other, gone
	}
	for r.must(t, question{prompt: lost, answer: 8}).Served != gone.addr {
		lost = ids(3000)
	}
	was := r.of(t, gone)
	gone.kill()
	var away []*answer
	for range 6 { // the first finds nobody there, and goes on to weir's second
		away = append(away, r.ask(t.Context(), question{prompt: prompt, answer: 8}))
	}
	gone.start(r, 0)
	gone.awaitReady(t)
	eventually(t, "weir has seen the restart", func() bool {
		p := r.of(t, gone)
		return p.Restarts == 1 && !p.Down && p.Scrape.Started.After(*was.Scrape.Started)
	})
	r.settle(t)
	for i, a := range away {
		if a.status != http.StatusOK || a.err != nil || a.Served != other.addr || a.Attempts > 1 && i > 0 {
			t.Errorf("while it is away, request %d: status %d, %v, attempts %d, served by %s", i, a.status, a.err, a.Attempts, a.Served)
		}
	}
	served := map[string]int{}
	for range 10 { // new prompts, to which a cache is no matter
		served[r.must(t, question{prompt: ids(500), answer: 8}).Served]++
	}
	if served[gone.addr] == 0 {
		t.Errorf("of 10 new prompts none goes to the one that came back: %v", served)
	}
	cachedAsMatched(t, r.must(t, question{prompt: prompt, answer: 8}))
	if a := r.must(t, question{prompt: lost, answer: 8}); a.Weir.number("matched_tokens") != 0 || a.usage.Details.Cached != 0 {
		t.Errorf("of what was cached before, %v tokens are matched, %d cached", a.Weir.number("matched_tokens"), a.usage.Details.Cached)
	}
}

// gate starts weir anew, told how many seats a vLLM has. What is too much waits in weir then.
func gate(t *testing.T, r *rig) {
	config, err := envoy.Replace(r.config, "{profile: 8B}", "{profile: 8B, seats: 16}")
	if err != nil {
		t.Fatal(err)
	}
	r.startWeir(t, config)
	var questions []question
	for i := range 6 * seats {
		questions = append(questions, question{prompt: ids(100), answer: 150 + 37*i%250, stream: i%2 == 0})
	}
	ended := make(chan []*answer, 1)
	go func() { ended <- r.all(t, 3*seats, questions) }()
	most, held := map[*server]float64{}, 0
	var answers []*answer
	for answers == nil {
		for _, s := range r.vllms {
			most[s] = max(most[s], s.counters(t)["num_requests_waiting"])
		}
		held = max(held, r.pool(t).Held["interactive"])
		select {
		case answers = <-ended:
		default:
		}
	}
	r.whole(t, answers...)
	// A seat is weir's as soon as the answer has ended at Envoy, and vLLM's when its next step begins.
	if held < seats/2 || held > seats || most[r.vllms[0]] > 4 || most[r.vllms[1]] > 4 {
		t.Errorf("%d held in weir at most, %v waiting in vLLM", held, most)
	}
}
