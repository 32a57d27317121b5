package scrape

import "slices"

// The series that are read. A name that stands first is preferred to the next. vLLM's are those of 0.32, with the older
// ones that have the same meaning; vllm:gpu_prefix_cache_queries, which counted blocks once and tokens later, is not
// among them. SGLang's are those of 0.5.23, whose sglang:prompt_tokens_total and sglang:generation_tokens_total move only
// when a request ends: what moves while it works is sglang:realtime_tokens_total.
var (
	running    = []string{"vllm:num_requests_running", "sglang:num_running_reqs"}
	waiting    = []string{"vllm:num_requests_waiting", "sglang:num_queue_reqs"}
	kv         = []string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"}
	sizes      = []string{"sglang:max_total_num_tokens"}
	caches     = []string{"vllm:cache_config_info"} // vLLM tells the size in labels
	prompts    = []string{"vllm:prompt_tokens_total", "vllm:prompt_tokens"}
	generation = []string{"vllm:generation_tokens_total", "vllm:generation_tokens"}
	allPrompts = append(slices.Clone(prompts), "sglang:prompt_tokens_total") // SGLang's moves when a request ends
	realtime   = []string{"sglang:realtime_tokens_total"}                    // by mode: computed and cached prompt tokens, and generated ones

	done = []string{"vllm:prompt_tokens_by_source_total", "vllm:prompt_tokens_by_source"} // by source: computed and cached

	answers = []pair{histogram("vllm:request_generation_tokens"), {"sglang:num_requests_total", "sglang:generation_tokens_total"}}
	first   = []pair{histogram("vllm:time_to_first_token_seconds"), histogram("sglang:time_to_first_token_seconds")}
	gaps    = []pair{
		histogram("vllm:inter_token_latency_seconds"), histogram("vllm:time_per_output_token_seconds"),
		histogram("sglang:inter_token_latency_seconds"), histogram("sglang:time_per_output_token_seconds"),
	}
	queues = []pair{histogram("vllm:request_queue_time_seconds"), histogram("sglang:queue_time_seconds")}
	hits   = []pair{
		{"vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"}, {"sglang:prompt_tokens_total", "sglang:cached_tokens_total"},
	}
	preemptions = []string{"vllm:num_preemptions_total", "sglang:num_retracted_requests_total"}

	wanted = nameSet([][]string{running, waiting, kv, sizes, caches, allPrompts, generation, realtime, done, preemptions, {started}},
		[][]pair{answers, first, gaps, queues, hits})
)

// started is told by the client library, not by the engine; not where several processes of a replica share one page.
const started = "process_start_time_seconds"

// pair names a counter of events and one of the sum of their values.
type pair struct{ count, sum string }

// histogram is the pair of a histogram, or of a summary.
func histogram(name string) pair { return pair{name + "_count", name + "_sum"} }

func nameSet(lists [][]string, pairs [][]pair) map[string]bool {
	set := map[string]bool{}
	for _, names := range lists {
		for _, n := range names {
			set[n] = true
		}
	}
	for _, list := range pairs {
		for _, p := range list {
			set[p.count], set[p.sum] = true, true
		}
	}
	return set
}
