package scrape

import (
	"math"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/pool"
)

func TestParseReadsSGLang(t *testing.T) {
	got, err := Parse(strings.NewReader(read(t, "sglang-0.5.23-metrics.txt")), text)
	want := pool.Sample{
		Running: 3, HasRunning: true, Waiting: 7, HasWaiting: true, KV: 0.25, HasKV: true, KVTokens: 421_000, HasSize: true,
		Tokens: 3002 + 5*26 + 5*2976 + 6*7, HasTokens: true, Prompt: 6 * 3002, HasPrompt: true, // as the scheduler counts: the first token of each is prefill's
		Answers: 6, AnswerTokens: 48, HasAnswers: true,
		TTFT: pool.Summary{Count: 6, Sum: 0.542, Has: true}, InterToken: pool.Summary{Count: 42, Sum: 0.084, Has: true},
		Queue: pool.Summary{Count: 6, Sum: 0.012, Has: true}, Hits: pool.Summary{Count: 6 * 3002, Sum: 5 * 2976, Has: true},
		Computed: 3002 + 5*26, HasComputed: true, Preemptions: 1, HasPreemptions: true,
	}
	again, err2 := Parse(strings.NewReader(read(t, "sglang-0.5.23-openmetrics.txt")), om)
	if err2 != nil || again != got {
		t.Errorf("as OpenMetrics %+v, %v; as text %+v", again, err2, got)
	}
	for _, m := range []*pool.Summary{&got.TTFT, &got.InterToken, &got.Queue} {
		m.Sum = math.Round(m.Sum*1e9) / 1e9
	}
	if err != nil || got != want {
		t.Errorf("Parse = %+v, %v; want %+v", got, err, want)
	}
}

// What an older vLLM calls its series. Prefix cache counters of that name are of blocks or of tokens: not read.
func TestParseOlderVLLM(t *testing.T) {
	const page = `vllm:num_requests_running{model_name="m"} 3
vllm:num_requests_waiting{model_name="m"} 7
vllm:num_requests_swapped{model_name="m"} 1
vllm:gpu_cache_usage_perc{model_name="m"} 0.25
vllm:gpu_prefix_cache_queries_total{model_name="m"} 50
vllm:gpu_prefix_cache_hits_total{model_name="m"} 20
vllm:prompt_tokens_total{model_name="m"} 100
vllm:generation_tokens_total{model_name="m"} 20
vllm:num_preemptions_total{model_name="m"} 2
vllm:request_generation_tokens_sum{model_name="m"} 18
vllm:request_generation_tokens_count{model_name="m"} 4
vllm:time_to_first_token_seconds_sum{model_name="m"} 1.5
vllm:time_to_first_token_seconds_count{model_name="m"} 5
vllm:time_per_output_token_seconds_sum{model_name="m"} 0.25
vllm:time_per_output_token_seconds_count{model_name="m"} 15
vllm:request_queue_time_seconds_sum{model_name="m"} 0.125
vllm:request_queue_time_seconds_count{model_name="m"} 5
vllm:cache_config_info{block_size="16",num_gpu_blocks="1000"} 1
`
	want := pool.Sample{
		Running: 3, HasRunning: true, Waiting: 7, HasWaiting: true, KV: 0.25, HasKV: true, KVTokens: 16_000, HasSize: true,
		Tokens: 120, HasTokens: true, Prompt: 100, HasPrompt: true, Answers: 4, AnswerTokens: 18, HasAnswers: true,
		TTFT: pool.Summary{Count: 5, Sum: 1.5, Has: true}, InterToken: pool.Summary{Count: 15, Sum: 0.25, Has: true},
		Queue: pool.Summary{Count: 5, Sum: 0.125, Has: true}, Preemptions: 2, HasPreemptions: true,
	}
	if got, err := Parse(strings.NewReader(page), text); err != nil || got != want {
		t.Errorf("Parse = %+v, %v; want %+v", got, err, want)
	}
	const both = page + "vllm:inter_token_latency_seconds_sum 4\nvllm:inter_token_latency_seconds_count 8\n"
	want.InterToken = pool.Summary{Count: 8, Sum: 4, Has: true}
	if got, err := Parse(strings.NewReader(both), text); err != nil || got != want {
		t.Errorf("with the new name too: Parse = %+v, %v; want %+v", got, err, want)
	}
}

// What is computed of prompts lies between what is begun, which hits tell as a prompt is admitted, and what is done.
func TestParseComputed(t *testing.T) {
	const begun = "vllm:prefix_cache_queries_total 1000\nvllm:prefix_cache_hits_total 400\n"
	const done = "vllm:prompt_tokens_by_source_total{source=\"local_compute\"} 200\nvllm:prompt_tokens_by_source_total{source=\"local_cache_hit\"} 300\n"
	for name, c := range map[string]struct {
		page string
		want float64
		has  bool
	}{
		"between both":         {begun + done, 400, true},
		"of two models":        {begun + strings.ReplaceAll(done, "{", "{model_name=\"a\",") + strings.ReplaceAll(done, "{", "{model_name=\"b\","), 500, true},
		"begun alone":          {begun, 600, true},
		"done alone":           {done, 0, false},
		"more hits than asked": {"vllm:prefix_cache_queries_total 1\nvllm:prefix_cache_hits_total 2\n", 0, true},
		"as it works":          {begun + "sglang:realtime_tokens_total{mode=\"prefill_compute\"} 70\nsglang:realtime_tokens_total{mode=\"decode\"} 5\n", 70, true},
	} {
		got, err := Parse(strings.NewReader(c.page), text)
		if err != nil || got.Computed != c.want || got.HasComputed != c.has {
			t.Errorf("%s: %v, %v, %v; want %v, %v", name, got.Computed, got.HasComputed, err, c.want, c.has)
		}
	}
}

// Ranks of one engine tell of the same requests, data-parallel ranks of their own, and priorities of parts of a total.
func TestParseRanks(t *testing.T) {
	for name, c := range map[string]struct {
		page string
		want float64 // -1: unknown
	}{
		"one":               {`{tp_rank="0",pp_rank="0"} 5`, 5},
		"pipeline":          {`{tp_rank="0",pp_rank="0"} 5|{tp_rank="0",pp_rank="1"} 5`, 5},
		"one rank lags":     {`{tp_rank="0",pp_rank="0"} 4|{tp_rank="0",pp_rank="1"} 5`, 5},
		"all schedulers":    {`{moe_ep_rank="0",tp_rank="0"} 5|{moe_ep_rank="1",tp_rank="1"} 5|{moe_ep_rank="2",tp_rank="2"} 3`, 5},
		"data parallel":     {`{dp_rank="0",tp_rank="0"} 5|{dp_rank="1",tp_rank="2"} 7`, 12},
		"both":              {`{dp_rank="0",tp_rank="0"} 5|{dp_rank="0",tp_rank="1"} 6|{dp_rank="1",tp_rank="2"} 7|{dp_rank="1",tp_rank="3"} 7`, 13},
		"two models":        {`{model_name="a",tp_rank="0"} 5|{model_name="b",tp_rank="0"} 7`, 12},
		"priorities":        {`{priority=""} 5|{priority="1"} 3|{priority="None"} 2`, 5},
		"total comes last":  {`{priority="1"} 3|{priority=""} 5`, 5},
		"no total":          {`{priority="1"} 3|{priority="2"} 2`, 5},
		"a rank is NaN":     {`{pp_rank="0"} 5|{pp_rank="1"} NaN`, -1},
		"names do not join": {`{a="b",c=""} 5|{a="",b="c"} 7`, 12},
	} {
		var page strings.Builder
		for line := range strings.SplitSeq(c.page, "|") {
			page.WriteString("sglang:num_running_reqs" + line + "\n")
		}
		got, err := Parse(strings.NewReader(page.String()), text)
		if err != nil || got.HasRunning != (c.want >= 0) || got.Running != max(c.want, 0) {
			t.Errorf("%s: %v, %v, %v; want %v", name, got.Running, got.HasRunning, err, c.want)
		}
	}
}

// A sum without its count, or with a bad one, is unknown; nothing is made up of two engines' names.
func TestParseSummaries(t *testing.T) {
	const sum, count = "vllm:time_to_first_token_seconds_sum", "vllm:time_to_first_token_seconds_count"
	for name, c := range map[string]struct {
		page string
		want pool.Summary
	}{
		"both":            {sum + " 3\n" + count + " 6\n", pool.Summary{Count: 6, Sum: 3, Has: true}},
		"two engines":     {sum + "{engine=\"0\"} 3\n" + sum + "{engine=\"1\"} 0.5\n" + count + "{engine=\"0\"} 6\n" + count + "{engine=\"1\"} 2\n", pool.Summary{Count: 8, Sum: 3.5, Has: true}},
		"nothing counted": {sum + " 0\n" + count + " 0\n", pool.Summary{Has: true}},
		"no count":        {sum + " 3\n", pool.Summary{}},
		"no sum":          {count + " 6\n", pool.Summary{}},
		"sum is NaN":      {sum + " NaN\n" + count + " 6\n", pool.Summary{}},
		"count below 0":   {sum + " 3\n" + count + " -6\n", pool.Summary{}},
		"count of SGLang": {sum + " 3\nsglang:time_to_first_token_seconds_count 6\n", pool.Summary{}},
	} {
		if got, err := Parse(strings.NewReader(c.page), text); err != nil || got.TTFT != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got.TTFT, err, c.want)
		}
	}
}

func TestParseStart(t *testing.T) {
	const line = "vllm:num_requests_running 1\n"
	for page, want := range map[string]float64{
		line: 0,
		line + "process_start_time_seconds 1.7959695389e+09\n":                                             1795969538.9,
		line + "process_start_time_seconds{pid=\"1\"} 100\nprocess_start_time_seconds{pid=\"2\"} 200\n":    200,
		line + "process_start_time_seconds 0\n":                                                            0,
		line + "process_start_time_seconds -5\n":                                                           0,
		line + "process_start_time_seconds NaN\n":                                                          0,
		line + "process_start_time_seconds +Inf\n":                                                         0,
		line + "process_start_time_seconds 1e15\n":                                                         0, // milliseconds, or worse
		line + "process_start_time_seconds{pid=\"1\"} 100\nprocess_start_time_seconds{pid=\"2\"} 1.0e15\n": 0,
	} {
		if got, err := Parse(strings.NewReader(page), text); err != nil || got.HasStarted != (want > 0) || got.Started != want {
			t.Errorf("%q: %v, %v, %v; want %v", page, got.Started, got.HasStarted, err, want)
		}
	}
}
