package scrape

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/pool"
)

func recording(tb testing.TB) string { return read(tb, "vllm-0.32.0-metrics.txt") }

func read(tb testing.TB, name string) string {
	tb.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// value is what the one line of a recording says that begins with a name.
func value(t *testing.T, page, name string) float64 {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n"+name+"{")
	if !found {
		_, rest, found = strings.Cut(page, "\n"+name+" ")
	}
	line, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
	if !found || err != nil {
		t.Fatalf("the recording has no %s: %v", name, err)
	}
	return v
}

// TestParseReadsTheRecordings holds a page of vLLM's to its own lines, and to what is known of it from elsewhere: testdata/README.md.
func TestParseReadsTheRecordings(t *testing.T) {
	for _, name := range []string{"vllm-0.32.0-metrics", "vllm-0.32.0-busy-metrics"} {
		page := read(t, name+".txt")
		of := func(name string) float64 { return value(t, page, name) }
		summary := func(name string) pool.Summary {
			return pool.Summary{Count: of(name + "_count"), Sum: of(name + "_sum"), Has: true}
		}
		var known map[string]float64
		if err := json.Unmarshal([]byte(read(t, name+".json")), &known); err != nil || len(known) < 3 {
			t.Fatalf("%s: %v, %v", name, known, err)
		}
		done := of(`vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="local_compute"}`)
		begun := of("vllm:prefix_cache_queries_total") - of("vllm:prefix_cache_hits_total")
		want := pool.Sample{
			Running: of("vllm:num_requests_running"), HasRunning: true, Waiting: of("vllm:num_requests_waiting"), HasWaiting: true,
			KV: of("vllm:kv_cache_usage_perc"), HasKV: true, KVTokens: known["kv_tokens"], HasSize: true,
			Tokens: of("vllm:prompt_tokens_total") + of("vllm:generation_tokens_total"), HasTokens: true,
			Prompt: of("vllm:prompt_tokens_total"), HasPrompt: true, Computed: (begun + done) / 2, HasComputed: true,
			Answers: of("vllm:request_generation_tokens_count"), AnswerTokens: of("vllm:request_generation_tokens_sum"), HasAnswers: true,
			TTFT: summary("vllm:time_to_first_token_seconds"), InterToken: summary("vllm:inter_token_latency_seconds"), Queue: summary("vllm:request_queue_time_seconds"),
			Hits:        pool.Summary{Count: of("vllm:prefix_cache_queries_total"), Sum: of("vllm:prefix_cache_hits_total"), Has: true},
			Preemptions: of("vllm:num_preemptions_total"), HasPreemptions: true, Started: of("process_start_time_seconds"), HasStarted: true,
		}
		got, err := Parse(strings.NewReader(page), text)
		if err != nil || got != want {
			t.Errorf("%s: Parse = %+v, %v; want %+v", name, got, err, want)
		}
		is := map[string]float64{
			"running": got.Running, "waiting": got.Waiting, "kv": got.KV, "kv_tokens": got.KVTokens, "tokens": got.Tokens,
			"answers": got.Answers, "answer_tokens": got.AnswerTokens, "hit_tokens": got.Hits.Sum,
		}
		for field, v := range known {
			if is[field] != v {
				t.Errorf("%s: %s is %v, known as %v", name, field, is[field], v)
			}
		}
		if again, err := Parse(strings.NewReader(page+"# EOF\n"), om); err != nil || again != want {
			t.Errorf("%s as OpenMetrics %+v, %v; want %+v", name, again, err, want)
		}
	}
}
