package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/lab/workload"
)

// profileOf runs weirlab profile and returns its exit status and what it wrote.
func profileOf(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), append([]string{"profile"}, args...), &out, &errs)
	return status, out.String(), errs.String()
}

func traceFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "small.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const smallTrace = `{"timestamp": 0, "input_length": 1024, "output_length": 32, "hash_ids": [0, 1]}
{"timestamp": 3000, "input_length": 1024, "output_length": 32, "hash_ids": [0, 2]}
{"timestamp": 6000, "input_length": 1024, "output_length": 32, "hash_ids": [0, 3]}
`

func TestProfileOfATrace(t *testing.T) {
	path := traceFile(t, smallTrace)
	status, out, errs := profileOf(t, "-trace", path, "-speed", "2")
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	for _, want := range []string{
		"3 requests in ", "8 replicas 32B, 307k tokens of KV each", "32.0 prompt tokens per answer token",
		"33.3 % of prompt tokens", "33.3 % found by one cache with the pool's memory, 33.3 % by one without", "512 tokens up to token 512, in 3 requests",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	_, out, _ = profileOf(t, "-trace", path, "-json", "-profile", "8B", "-replicas", "1", "-kv-tokens", "1024")
	var got workload.Traffic
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	// With memory for one prompt, the end of the last one goes before its beginning.
	if got.Requests != 3 || got.InOut != 32 || got.Unbounded != got.Repeated || got.Routed.Hit != got.Spread.Hit || got.Routed.Binds == "" {
		t.Errorf("measured %+v", got)
	}
}

func TestProfileOfAWorkload(t *testing.T) {
	status, out, errs := profileOf(t, "-workload", "W5-35", "-load", "3", "-json")
	var got workload.Traffic
	if err := json.Unmarshal([]byte(out), &got); status != 0 || err != nil {
		t.Fatalf("status %d, %v: %s", status, err, errs)
	}
	if got.InOut < 33 || got.InOut > 37 || got.Routed.Knee < 1.2*got.Spread.Knee {
		t.Errorf("in:out %.1f, knees %.1f and %.1f: not the RAG of 35:1 that routing by prefix helps", got.InOut, got.Spread.Knee, got.Routed.Knee)
	}
	if _, again, _ := profileOf(t, "-workload", "W5-35", "-load", "3", "-json"); again != out {
		t.Error("the same seed gives other figures")
	}
}

func TestProfileRefuses(t *testing.T) {
	bad := traceFile(t, smallTrace+`{"timestamp": 6000, "input_length": -1}`+"\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "either -trace or -workload"},
		{[]string{"-trace", bad, "-workload", "W3"}, "either -trace or -workload"},
		{[]string{"-trace", bad}, "small.jsonl:4: input_length is -1"},
		{[]string{"-trace", bad + "x"}, "no such file"},
		{[]string{"-workload", "W0"}, "use one of W3"},
		{[]string{"-workload", "W3", "-load", "-1"}, "a load of -1"},
		{[]string{"-workload", "W3", "-profile", "1T"}, "no profile"},
		{[]string{"-workload", "W3", "-replicas", "-1"}, "-1 replicas"},
		{[]string{"-workload", "W3", "-kv-tokens", "1"}, "less than a block"},
		{[]string{"W3"}, "flags only"},
	} {
		if status, _, errs := profileOf(t, c.args...); status != 1 || !strings.Contains(errs, c.want) {
			t.Errorf("%v: status %d, %q, want %q", c.args, status, errs, c.want)
		}
	}
}
