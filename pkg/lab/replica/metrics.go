package replica

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// The bounds of vLLM 0.32's histograms, from a recorded page.
var (
	tokenBounds   = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000}
	batchBounds   = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	smallBounds   = []float64{1, 2, 3, 4, 5, 10, 20}
	firstBounds   = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160}
	gapBounds     = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	requestBounds = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
)

var finishReasons = []string{"stop", "length", "abort", "error", "repetition"}

// meter is what vLLM measures of a server since its start. It belongs to the engine's goroutine. Times are
// wall seconds: what a client of a server that runs Speed times as fast would measure.
type meter struct {
	cfg      *Config
	started  time.Time
	finished map[string]int64 // by reason

	prompt, generation, computed, preemptions *histogram // per request
	batch                                     *histogram // per step
	first, gap, perToken                      *histogram
	e2e, queue, inference, prefill, decode    *histogram
}

func newMeter(cfg *Config, now time.Time) *meter {
	h := newHistogram
	return &meter{
		cfg: cfg, started: now, finished: map[string]int64{},
		prompt: h(tokenBounds), generation: h(tokenBounds), computed: h(tokenBounds), preemptions: h(smallBounds),
		batch: h(batchBounds), first: h(firstBounds), gap: h(gapBounds), perToken: h(gapBounds),
		e2e: h(requestBounds), queue: h(requestBounds), inference: h(requestBounds), prefill: h(requestBounds), decode: h(requestBounds),
	}
}

func (m *meter) seconds(d time.Duration) float64 { return d.Seconds() / m.cfg.Speed }

// observe takes in one event; s is its sequence, if it has one.
func (m *meter) observe(ev *step.Event, s *sequence) {
	switch ev.Kind {
	case step.Stepped:
		m.batch.observe(float64(ev.Tokens), 1)
		if ev.Decodes > 0 {
			m.gap.observe(m.seconds(ev.Took), ev.Decodes)
		}
	case step.First:
		m.first.observe(m.seconds(s.First-s.Submitted), 1)
	case step.Resumed:
		m.gap.observe(m.seconds(ev.Took), 1)
	case step.Finished:
		m.finish(s)
	}
}

func (m *meter) finish(s *sequence) {
	m.finished[s.reason]++
	m.prompt.observe(float64(s.Prompt), 1)
	m.generation.observe(float64(s.Output), 1)
	m.computed.observe(float64(s.Prompt-s.Cached), 1)
	m.preemptions.observe(float64(s.Preemptions), 1)
	m.e2e.observe(m.seconds(s.Last-s.Submitted), 1)
	m.queue.observe(m.seconds(s.Admitted-s.Queued), 1)
	m.inference.observe(m.seconds(s.Last-s.Admitted), 1)
	m.prefill.observe(m.seconds(s.First-s.Admitted), 1)
	m.decode.observe(m.seconds(s.Last-s.First), 1)
	if s.Output > 1 {
		m.perToken.observe(m.seconds(s.Last-s.First)/float64(s.Output-1), 1)
	}
}

// page renders the metrics, by vLLM's names.
func (m *meter) page(st step.Stats) []byte {
	started := float64(m.started.UnixMicro()) / 1e6
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(m.cfg.Model) + `"`
	p := &metricsPage{buf: make([]byte, 0, 32<<10), model: quoted, created: started}
	p.family("process_start_time_seconds", "gauge", "Unix time at which the process started.")
	p.buf = fmt.Appendf(p.buf, "process_start_time_seconds %s\n", appendFloat(nil, started))
	m.gauges(p, st)
	m.counters(p, st)
	m.histograms(p)
	p.family("vllm:cache_config_info", "gauge", "Configuration of the KV cache.")
	p.buf = fmt.Appendf(p.buf, `vllm:cache_config_info{block_size="%d",cache_dtype="auto",enable_prefix_caching="True",engine="0",kv_cache_size_tokens="%d",num_gpu_blocks="%d"} 1.0`+"\n",
		step.BlockTokens, st.KVBlocks*step.BlockTokens, st.KVBlocks)
	return p.buf
}

func (m *meter) gauges(p *metricsPage, st step.Stats) {
	p.gauge("vllm:num_requests_running", "Requests in the running batch.", float64(st.Running))
	p.gauge("vllm:num_requests_waiting", "Requests in the scheduler's queue.", float64(st.Waiting))
	p.family("vllm:num_requests_waiting_by_reason", "gauge", "Requests in the scheduler's queue, by what they wait for.")
	p.sample("vllm:num_requests_waiting_by_reason", `reason="capacity"`, float64(st.Waiting))
	p.sample("vllm:num_requests_waiting_by_reason", `reason="deferred"`, 0)
	p.gauge("vllm:kv_cache_usage_perc", "Share of KV blocks held, 0 to 1.", st.KVUsage())
}

func (m *meter) counters(p *metricsPage, st step.Stats) {
	p.counter("vllm:prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", float64(st.Queries))
	p.counter("vllm:prefix_cache_hits", "Prompt tokens found in the prefix cache.", float64(st.Hits))
	p.counter("vllm:num_preemptions", "Preemptions.", float64(st.Preemptions))
	p.counter("vllm:prompt_tokens", "Prompt tokens processed, cached ones included.", float64(st.Prompt))
	p.split("vllm:prompt_tokens_by_source", "Prompt tokens by where their KV came from.", "source",
		[]string{"local_compute", "local_cache_hit", "external_kv_transfer"}, func(source string) float64 {
			return map[string]float64{"local_compute": float64(st.Prompt - st.Cached), "local_cache_hit": float64(st.Cached)}[source]
		})
	p.counter("vllm:prompt_tokens_cached", "Prompt tokens found in a cache.", float64(st.Cached))
	p.counter("vllm:generation_tokens", "Answer tokens.", float64(st.Generated))
	p.split("vllm:request_success", "Requests that ended, by reason.", "finished_reason", finishReasons,
		func(reason string) float64 { return float64(m.finished[reason]) })
}

func (m *meter) histograms(p *metricsPage) {
	for _, f := range []struct {
		name, help string
		h          *histogram
	}{
		{"request_prompt_tokens", "Prompt tokens of a request.", m.prompt},
		{"request_generation_tokens", "Answer tokens of a request.", m.generation},
		{"iteration_tokens_total", "Tokens computed in a step.", m.batch},
		{"time_to_first_token_seconds", "From arrival to the first token.", m.first},
		{"inter_token_latency_seconds", "Between two tokens of a request.", m.gap},
		{"request_time_per_output_token_seconds", "Mean time between a request's tokens.", m.perToken},
		{"e2e_request_latency_seconds", "From arrival to the last token.", m.e2e},
		{"request_queue_time_seconds", "In the scheduler's queue.", m.queue},
		{"request_inference_time_seconds", "From first scheduled to the last token.", m.inference},
		{"request_prefill_time_seconds", "From first scheduled to the first token.", m.prefill},
		{"request_decode_time_seconds", "From the first token to the last.", m.decode},
		{"request_num_preemptions", "Preemptions of a request.", m.preemptions},
		{"request_prefill_kv_computed_tokens", "Prompt tokens of a request not found in a cache.", m.computed},
	} {
		p.histogram("vllm:"+f.name, f.help, f.h)
	}
}

func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	switch s.fault.Load().Metrics {
	case "hang":
		hang(r)
	case "error":
		http.Error(w, "simulated failure", http.StatusInternalServerError)
		return
	}
	w.Header().Set("content-type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(s.engine.metrics())
}
