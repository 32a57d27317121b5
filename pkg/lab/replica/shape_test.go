package replica

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func sameShape(t *testing.T, what, got, want string) {
	t.Helper()
	g, w := shape(decode[any](t, got)), shape(decode[any](t, want))
	if !reflect.DeepEqual(g, w) {
		t.Errorf("%s: shape of\n%s\nis not that of\n%s", what, got, want)
	}
}

// TestChatStreamAsRecorded compares event by event: the role, a token, the last token, the usage, the end.
// A late machine may put tokens together, so there may be no middle event.
func TestChatStreamAsRecorded(t *testing.T) {
	url, _ := start(t, nil)
	resp := post(t, url+"/v1/chat/completions",
		`{"model":"tiny","messages":[{"role":"user","content":"hi"}],"max_tokens":3,"stream":true,"stream_options":{"include_usage":true}}`)
	if ct := resp.Header.Get("content-type"); ct != "text/event-stream; charset=utf-8" {
		t.Errorf("content-type %q", ct)
	}
	got, want := events(t, read(t, resp.Body)), events(t, recorded(t, "chat-stream.txt"))
	if len(got) < 4 || len(got) > len(want) {
		t.Fatalf("%d events: %q", len(got), got)
	}
	sameShape(t, "role", got[0], want[0])
	for _, e := range got[1 : len(got)-3] {
		sameShape(t, "token", e, want[1])
	}
	for i := 3; i >= 2; i-- {
		sameShape(t, "last token and usage", got[len(got)-i], want[len(want)-i])
	}
	if got[len(got)-1] != "[DONE]" {
		t.Errorf("the stream ends with %q", got[len(got)-1])
	}
}

func TestModelsAsRecorded(t *testing.T) {
	url, _ := start(t, nil)
	_, got := get(t, url+"/v1/models")
	sameShape(t, "models", got, recorded(t, "models.json"))
	if !strings.Contains(got, `"id":"tiny"`) || !strings.Contains(got, `"max_model_len":420992`) {
		t.Errorf("models: %s", got)
	}
}

func TestErrorsAsRecorded(t *testing.T) {
	url, _ := start(t, nil)
	code, got := ask(t, url+"/v1/chat/completions", `{"model":"nope","messages":[{"role":"user","content":"hi"}]}`)
	if code != http.StatusNotFound || got != strings.TrimSpace(recorded(t, "error-404.json")) {
		t.Errorf("unknown model: %d %s", code, got)
	}
	code, got = ask(t, url+"/v1/chat/completions", `{`)
	if code != http.StatusBadRequest {
		t.Errorf("broken body: %d", code)
	}
	sameShape(t, "broken body", got, recorded(t, "error-400.json"))
	if e := decode[map[string]struct{ Type, Param string }](t, got)["error"]; e.Type != "Bad Request" || e.Param != "body.1" {
		t.Errorf("broken body: %s", got)
	}
}

func families(t *testing.T, page string) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	f, err := p.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func labels(m *dto.Metric) string {
	names := make([]string, 0, len(m.Label))
	for _, l := range m.Label {
		names = append(names, l.GetName())
		if n := l.GetName(); n == "reason" || n == "source" || n == "finished_reason" {
			names = append(names, l.GetValue())
		}
	}
	return strings.Join(names, ",")
}

// TestMetricsAsRecorded: every metric that the server shows is one of vLLM's, with its type and its labels,
// and those that weir or an operator reads are there.
func TestMetricsAsRecorded(t *testing.T) {
	url, _ := start(t, nil)
	_, page := get(t, url+"/metrics")
	got, want := families(t, page), families(t, recorded(t, "metrics.txt"))
	for name, g := range got {
		w, ok := want[name]
		if !ok || g.GetType() != w.GetType() || len(g.Metric) != len(w.Metric) {
			t.Errorf("%s: %v x %d, recorded %v x %d", name, g.GetType(), len(g.Metric), w.GetType(), len(w.GetMetric()))
			continue
		}
		series := map[string]bool{}
		for _, m := range w.Metric {
			series[labels(m)] = true
		}
		for _, m := range g.Metric {
			if name == "vllm:cache_config_info" {
				for _, l := range m.Label {
					if !strings.Contains(","+labels(w.Metric[0])+",", ","+l.GetName()+",") {
						t.Errorf("%s: label %s is not recorded", name, l.GetName())
					}
				}
			} else if !series[labels(m)] {
				t.Errorf("%s{%s} is not recorded: %v", name, labels(m), series)
			}
		}
	}
	for _, name := range strings.Fields(`num_requests_running num_requests_waiting num_requests_waiting_by_reason kv_cache_usage_perc
		prompt_tokens_total prompt_tokens_by_source_total prompt_tokens_cached_total generation_tokens_total prefix_cache_queries_total
		prefix_cache_hits_total num_preemptions_total request_success_total time_to_first_token_seconds inter_token_latency_seconds
		request_time_per_output_token_seconds request_queue_time_seconds request_prefill_time_seconds request_decode_time_seconds
		e2e_request_latency_seconds request_inference_time_seconds request_prompt_tokens request_generation_tokens iteration_tokens_total
		request_num_preemptions request_prefill_kv_computed_tokens cache_config_info`) {
		if got["vllm:"+name] == nil {
			t.Errorf("no vllm:%s", name)
		}
	}
	if got["process_start_time_seconds"] == nil {
		t.Error("no process_start_time_seconds")
	}
}
