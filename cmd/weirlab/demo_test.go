package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/load"
)

// won is a report in which weir wins everything.
func won() report {
	results := func(chat, rag time.Duration) []load.Result {
		return []load.Result{{Kind: load.Chat, First: chat}, {Kind: load.RAG, First: rag}, {Kind: load.Long, First: 1}}
	}
	return report{
		before: outcome{results: results(20, 40), hits: 0.4},
		after:  outcome{results: results(10, 30), hits: 0.7},
		picked: 3,
	}
}

func TestVerdict(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*report)
		want   string // in the error; "" for none
	}{
		"won":             {func(*report) {}, ""},
		"long ones lost":  {func(r *report) { r.after.results[2].First = 2 }, ""},
		"all lost":        {func(r *report) { r.after.results[2].First = time.Hour }, "TTFT p50 of all"},
		"chat lost":       {func(r *report) { r.after.results[0].First = 21 }, "TTFT p50 of chat"},
		"chat drawn":      {func(r *report) { r.after.results[0].First = 20 }, "TTFT p50 of chat"},
		"RAG lost":        {func(r *report) { r.after.results[1].First = 41 }, "TTFT p50 of RAG"},
		"hit rate lost":   {func(r *report) { r.after.hits = 0.39 }, "hit rate"},
		"fallback":        {func(r *report) { r.picked = 2 }, "served 66.7 %"},
		"nothing counted": {func(r *report) { r.picked = 0 }, "served 0.0 %"},
		"an error":        {func(r *report) { r.after.results[0].Err = errors.New("reset") }, "weir: 1 requests failed, the first with: reset"},
		"late, but won":   {func(r *report) { r.before.results[0].Late = time.Second }, ""},
		"before":          {func(r *report) { r.before.results[2].Err = errors.New("reset") }, "round robin: 1 requests"},
	} {
		r := won()
		tc.change(&r)
		err := r.verdict()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		var out bytes.Buffer
		if r.print(&out); strings.Contains(out.String(), "The machine was busy") != (name == "late, but won") {
			t.Errorf("%s: %s", name, out.String())
		}
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), "prefix-cache hit rate 40.0 % ") {
			t.Errorf("%s: no hit rate in\n%s", name, out.String())
		}
	}
}

const page = `# HELP vllm:prompt_tokens_by_source_total Tokens.
vllm:prompt_tokens_by_source_total{engine="0",model_name="a b",source="local_compute"} 120.0
vllm:prompt_tokens_by_source_total{engine="1",model_name="a b",source="local_compute"} 3e1
vllm:prompt_tokens_by_source_total{engine="0",model_name="a b",source="local_cache_hit"} 80
vllm:prompt_tokens_by_source_total_created{engine="0",source="local_compute"} 1e9
process_start_time_seconds 5

`

func TestMetrics(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/none" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, page)
	}))
	defer s.Close()
	m, err := metrics(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for want, got := range map[float64]float64{
		150: m.sum("vllm:prompt_tokens_by_source_total", `source="local_compute"`),
		230: m.sum("vllm:prompt_tokens_by_source_total"),
		30:  m.sum("vllm:prompt_tokens_by_source_total", `source="local_compute"`, `engine="1"`),
		5:   m.sum("process_start_time_seconds"),
		0:   m.sum("other"),
	} {
		if got != want {
			t.Errorf("sum %v, want %v", got, want)
		}
	}
	if _, err := metrics(s.URL + "/none"); err == nil {
		t.Error("a 404 passes for a page")
	}
}

// TestPolicyMatchesTheClock holds that weir is told the replicas' times in wall time.
func TestPolicyMatchesTheClock(t *testing.T) {
	s := stack{opts: options{kv: demoKV, speed: 4}}
	want := "replica: {profile: 8B, step: 1.725ms, per_sequence: 1.1µs, per_context_token: 19ns, per_prompt_token: 6.95µs, kv_tokens: 240000}"
	if got := s.policy(); got != want {
		t.Errorf("policy %s, want %s", got, want)
	}
}

func TestChild(t *testing.T) {
	dir := t.TempDir()
	stubborn, err := startChild(dir, "log", "/bin/sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done")
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return stubborn.log() == "up\n" })
	pid := stubborn.cmd.Process.Pid
	if childNamed("sh") == 0 || statOf(fmt.Sprint(pid))[1] != fmt.Sprint(os.Getpid()) {
		t.Errorf("child %d is not found under this process", pid)
	}
	stubborn.kill(100 * time.Millisecond)
	select {
	case <-stubborn.done:
	default:
		t.Error("a child that ignores SIGTERM is still there after its stop")
	}
	if statOf(fmt.Sprint(pid)) != nil {
		t.Errorf("process %d is still there", pid)
	}
	if _, err := startChild(dir, "log", "/no/such/program"); err == nil {
		t.Error("a program that does not exist starts")
	}
}

func TestCPU(t *testing.T) {
	before := cpuOf(os.Getpid())
	waitFor(t, func() bool { return cpuOf(os.Getpid()) > before })
	if got := cpuOf(1 << 30); got != 0 {
		t.Errorf("no process has used %v", got)
	}
}

func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	for start := time.Now(); !so(); {
		if time.Since(start) > 20*time.Second {
			t.Fatal("waited 20 s")
		}
	}
}
