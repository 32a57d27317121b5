package scrape

import (
	"strings"
	"testing"
)

// The size of a replica's KV is in labels, those of all engines together; what is no size is unknown.
func TestParseSize(t *testing.T) {
	for name, c := range map[string]struct {
		lines string
		want  float64 // 0: unknown
	}{
		"vLLM":                   {`vllm:cache_config_info{block_size="16",engine="0",kv_cache_size_tokens="421000",num_gpu_blocks="1"} 1.0`, 421_000},
		"two engines":            {`vllm:cache_config_info{engine="0",kv_cache_size_tokens="100"} 1.0` + "\n" + `vllm:cache_config_info{engine="1",kv_cache_size_tokens="300"} 1.0`, 400},
		"older":                  {`vllm:cache_config_info{block_size="16",cache_dtype="auto",num_gpu_blocks="2000"} 1.0`, 32_000},
		"not yet sized":          {`vllm:cache_config_info{block_size="16",kv_cache_size_tokens="None",num_gpu_blocks="None"} 1.0`, 0},
		"no number":              {`vllm:cache_config_info{kv_cache_size_tokens="-5"} 1.0`, 0},
		"more than can be":       {`vllm:cache_config_info{kv_cache_size_tokens="99999999999999999999"} 1.0`, 0},
		"one engine of two told": {`vllm:cache_config_info{engine="0",kv_cache_size_tokens="100"} 1.0` + "\n" + `vllm:cache_config_info{engine="1"} 1.0`, 0},
		"nobody":                 {`vllm:num_requests_running 1.0`, 0},
	} {
		s, err := Parse(strings.NewReader(c.lines+"\n"), text)
		if err != nil || s.KVTokens*has(s.HasSize) != c.want || s.HasSize != (c.want > 0) {
			t.Errorf("%s: %v, %v, %v; want %v", name, s.KVTokens, s.HasSize, err, c.want)
		}
	}
}

func has(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}
