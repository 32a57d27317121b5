package scrape

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weirproxy/weir/pkg/pool"
)

const (
	text = "text/plain; version=0.0.4; charset=utf-8"
	om   = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

// set returns the recording with the value of each sample whose line begins with a key.
func set(t *testing.T, values map[string]string) string {
	t.Helper()
	lines := strings.Split(recording(t), "\n")
	for prefix, v := range values {
		found := false
		for i, l := range lines {
			if strings.HasPrefix(l, prefix+"{") {
				lines[i], found = l[:strings.LastIndex(l, " ")+1]+v, true
			}
		}
		if !found {
			t.Fatalf("the recording has no %s", prefix)
		}
	}
	return strings.Join(lines, "\n")
}

// TestParseKVNames is gateway-api-inference-extension PR#1905: the gauge was renamed, and a reader that knew one name saw a utilisation of 0.
func TestParseKVNames(t *testing.T) {
	const old, fresh, other = "vllm:gpu_cache_usage_perc 0.3\n", "vllm:kv_cache_usage_perc 0.7\n", "vllm:num_requests_running 1\n"
	for name, c := range map[string]struct {
		page string
		kv   float64
		has  bool
	}{
		"old only":            {old, 0.3, true},
		"new only":            {fresh, 0.7, true},
		"both, old first":     {old + fresh, 0.7, true},
		"both, new first":     {fresh + old, 0.7, true},
		"missing":             {other, 0, false},
		"new is no number":    {"vllm:kv_cache_usage_perc NaN\n" + old, 0, false},
		"another name's head": {"vllm:kv_cache_usage_perc_total 0.4\n" + other, 0, false},
	} {
		got, err := Parse(strings.NewReader(c.page), text)
		if err != nil || got.KV != c.kv || got.HasKV != c.has {
			t.Errorf("%s: KV = %v, %v, %v; want %v, %v", name, got.KV, got.HasKV, err, c.kv, c.has)
		}
		if got.HasWaiting || got.Waiting != 0 {
			t.Errorf("%s: waiting is known: %v", name, got.Waiting)
		}
	}
}

// TestParseSumsSeries is gateway-api-inference-extension#2950: data-parallel engines export a series each, and a reader kept only one.
func TestParseSumsSeries(t *testing.T) {
	lines := []string{
		`vllm:num_requests_waiting{engine="0",model_name="m"} 0`,
		`vllm:num_requests_waiting{engine="1",model_name="m"} 40`,
		`vllm:num_requests_waiting{engine="1",model_name="adapter \"} # {\\"} 2`,
		`vllm:num_requests_running{engine="0",model_name="m"} 5`,
		`vllm:num_requests_running{engine="1",model_name="m"} 6`,
		`vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.1`,
		`vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.95`,
		`vllm:prompt_tokens_total{engine="0"} 100`,
		`vllm:prompt_tokens_total{engine="1"} 200`,
		`vllm:generation_tokens{engine="0"} 30`,
		`vllm:generation_tokens{engine="1"} 4`,
	}
	want := pool.Sample{
		Running: 11, HasRunning: true, Waiting: 42, HasWaiting: true, KV: 0.95, HasKV: true, Tokens: 334, HasTokens: true, Prompt: 300, HasPrompt: true,
	}
	for turn := range lines { // every rotation, forwards and backwards
		turned := append(append([]string{}, lines[turn:]...), lines[:turn]...)
		for range 2 {
			got, err := Parse(strings.NewReader(strings.Join(turned, "\n")+"\n"), text)
			if err != nil || got != want {
				t.Fatalf("Parse of\n%s\n= %+v, %v; want %+v", strings.Join(turned, "\n"), got, err, want)
			}
			for i, j := 0, len(turned)-1; i < j; i, j = i+1, j-1 {
				turned[i], turned[j] = turned[j], turned[i]
			}
		}
	}
}

// TestParseBadValues is ai-dynamo/dynamo PR#3132: 0/0 stopped a router's decisions. A bad value makes its own field unknown.
func TestParseBadValues(t *testing.T) {
	for _, bad := range []string{"NaN", "nan", "+Inf", "-Inf", "-1", "-0.001", "1e308", "9007199254740994"} {
		for _, name := range []string{"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "vllm:prompt_tokens_total", "vllm:generation_tokens_total"} {
			got, err := Parse(strings.NewReader(set(t, map[string]string{name: bad})), text)
			if err != nil {
				t.Errorf("%s %s: %v", name, bad, err)
				continue
			}
			for n, field := range map[string]struct {
				has   bool
				value float64
				of    string
			}{
				"running": {got.HasRunning, got.Running, "num_requests_running"}, "waiting": {got.HasWaiting, got.Waiting, "num_requests_waiting"},
				"kv": {got.HasKV, got.KV, "kv_cache_usage_perc"}, "tokens": {got.HasTokens, got.Tokens, "_tokens_total"},
			} {
				if hit := strings.Contains(name, field.of); field.has == hit || hit && field.value != 0 {
					t.Errorf("%s %s: %s = %v, %v", name, bad, n, field.value, field.has)
				}
			}
		}
	}
	two := "vllm:num_requests_running{engine=\"0\"} 4\nvllm:num_requests_running{engine=\"1\"} NaN\nvllm:num_requests_waiting 1\n"
	if got, err := Parse(strings.NewReader(two), text); err != nil || got.HasRunning || !got.HasWaiting {
		t.Errorf("one engine of two is NaN: %+v, %v; want running unknown", got, err)
	}
}

func TestParseShareAboveOne(t *testing.T) {
	for v, want := range map[string]float64{"1": 1, "1.00009": 1, "1.0002": -1, "50": -1} {
		got, err := Parse(strings.NewReader("vllm:kv_cache_usage_perc "+v+"\n"), text)
		if err != nil || got.HasKV != (want >= 0) || got.HasKV && got.KV != want {
			t.Errorf("share %s: %v, %v, %v; want %v", v, got.KV, got.HasKV, err, want)
		}
	}
}

// TestParseFormats is vllm-project/vllm#8612: what is a metrics page, and what only answers 200.
func TestParseFormats(t *testing.T) {
	const line = "vllm:num_requests_running{engine=\"0\"} 2"
	for name, c := range map[string]struct {
		page, contentType string
		ok                bool
	}{
		"no content type":       {line + "\n", "", true},
		"timestamp":             {line + " 1795969538900\n", text, true},
		"CRLF":                  {"# TYPE x gauge\r\n" + line + "\r\n", text, true},
		"blank before labels":   {"  vllm:num_requests_running {engine=\"0\"}\t2\n\n", text, true},
		"OpenMetrics":           {"# TYPE vllm:num_requests_running gauge\n" + line + "\n# EOF\n", om, true},
		"exemplar":              {line + " 1795969538.9 # {trace_id=\"a} 7\"} 0.5 1.5\n# EOF\n", om, true},
		"EOF without a newline": {line + "\n# EOF", om, true},
		"OpenMetrics cut short": {line + "\n", om, false},
		"data after EOF":        {"# EOF\n" + line + "\n", om, false},
		"no newline at the end": {line, text, false},
		"hexadecimal":           {"vllm:num_requests_running 0x10\n", text, false},
		"no value":              {"vllm:num_requests_running{engine=\"0\"}\n", text, false},
		"name alone":            {"vllm:num_requests_running\n", text, false},
		"labels do not end":     {"vllm:num_requests_running{engine=\"0} 2\n", text, false},
		"labels are broken":     {"vllm:num_requests_running{=} 2\n", text, false},
		"empty":                 {"", text, false},
		"only comments":         {"# HELP vllm:num_requests_running r\n", text, false},
		"a name with _":         {"vllm_num_requests_running 2\n", text, true},
		"another's name":        {"my_vllm_num_requests_running 2\n", text, false},
		"another program's":     {"up 1\n", text, false},
		"another, that started": {"process_start_time_seconds 1795969538\n", text, false},
		"HTML":                  {"<html>\n" + line + "\n</html>\n", "text/html; charset=utf-8", false},
		"HTML that says text":   {"<html><body>It works</body></html>\n", text, false},
		"protobuf":              {line + "\n", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily", false},
		"a long line":           {"# " + strings.Repeat("x", maxLine) + "\n" + line + "\n", text, false},
	} {
		got, err := Parse(strings.NewReader(c.page), c.contentType)
		if (err == nil) != c.ok || c.ok && (!got.HasRunning || got.Running != 2) || !c.ok && got != (pool.Sample{}) {
			t.Errorf("%s: %+v, %v; want ok = %v", name, got, err, c.ok)
		}
	}
}

func TestParseBoundsThePage(t *testing.T) {
	const line, fill = "vllm:num_requests_running 2\n", "# filler\n"
	r := strings.NewReader(line + strings.Repeat(fill, 50<<20/len(fill)))
	if _, err := Parse(r, text); err != errTooLarge {
		t.Errorf("50 MiB: %v", err)
	}
	if read := r.Size() - int64(r.Len()); read > MaxBody {
		t.Errorf("%d bytes were read of a page that is too large", read)
	}
	if _, err := Parse(strings.NewReader(line+strings.Repeat(fill, (MaxBody-len(line)-1)/len(fill))), text); err != nil {
		t.Errorf("just under the bound: %v", err)
	}
	if _, err := Parse(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(line))), text); err != iotest.ErrTimeout {
		t.Errorf("a read error came out as %v", err)
	}
	junk := "vllm:num_requests_running{" + strings.Repeat("x", 10_000) + "} 1\n"
	if _, err := Parse(strings.NewReader(junk), text); err == nil || len(err.Error()) > 300 {
		t.Errorf("an error that quotes the page is %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(recording(f)), false)
	f.Add([]byte(read(f, "vllm-0.32.0-busy-metrics.txt")), false)
	f.Add([]byte(read(f, "sglang-0.5.23-metrics.txt")), false)
	f.Add([]byte("process_start_time_seconds 1e300\nsglang:num_queue_reqs{priority=\"\",tp_rank=\"0\"} 1\nsglang:num_queue_reqs{priority=\"1\"} 2\n"), false)
	f.Add([]byte("vllm:kv_cache_usage_perc{engine=\"0\"} NaN\nvllm:num_requests_running{a=\"\\\"}\"} 1e308 7 # {} 1\n# EOF\n"), true)
	f.Add([]byte("vllm:prompt_tokens_total 1\r\nvllm:generation_tokens{} +Inf\r\n"), false)
	f.Fuzz(func(t *testing.T, page []byte, openMetrics bool) {
		contentType := text
		if openMetrics {
			contentType = om
		}
		s, err := Parse(bytes.NewReader(page), contentType)
		if err != nil && s != (pool.Sample{}) {
			t.Errorf("an error with a sample: %+v", s)
		}
		for _, v := range []struct {
			value float64
			has   bool
			most  float64
		}{{s.Running, s.HasRunning, maxCount}, {s.Waiting, s.HasWaiting, maxCount}, {s.KV, s.HasKV, 1}, {s.Tokens, s.HasTokens, 2 * maxCount},
			{s.TTFT.Count, s.TTFT.Has, maxCount}, {s.TTFT.Sum, s.TTFT.Has, maxCount}, {s.Hits.Count, s.Hits.Has, maxCount}, {s.Hits.Sum, s.Hits.Has, maxCount},
			{s.Preemptions, s.HasPreemptions, maxCount}, {s.Started, s.HasStarted, maxStart}, {s.Computed, s.HasComputed, maxCount}, {s.Prompt, s.HasPrompt, maxCount}, {s.KVTokens, s.HasSize, maxCount}} {
			if math.IsNaN(v.value) || v.value < 0 || v.value > v.most || !v.has && v.value != 0 {
				t.Errorf("a value out of range: %+v", s)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	page := recording(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(strings.NewReader(page), text); err != nil {
			b.Fatal(err)
		}
	}
}
