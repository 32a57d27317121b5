//go:build vllm

package vllm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	model      = "tiny"
	maxContext = 16384 // --max-model-len
	block      = 32    // tokens of a block of vLLM's cache
	seats      = 16    // --max-num-seqs
	chunk      = 2048  // --max-num-batched-tokens
	kvSize     = 1024 * block
)

// server is a vLLM. Its counters begin anew with each start.
type server struct {
	*proc
	name, addr string
	starts     int
}

// start runs vLLM without a wait for it. Each has a core of its own, as far as there are cores.
func (s *server) start(r *rig, core int) {
	_, port, _ := strings.Cut(s.addr, ":")
	s.starts++
	s.proc = startProc(r.test, r.dir, s.name, []string{
		"HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "VLLM_CPU_KVCACHE_SPACE=1", fmt.Sprintf("VLLM_CPU_OMP_THREADS_BIND=%d", core%runtime.NumCPU()),
	}, *python, "-m", "vllm.entrypoints.cli.main", "serve", "model", "--served-model-name", model, "--load-format", "dummy",
		"--host", "127.0.0.1", "--port", port, "--dtype", "bfloat16", "--enforce-eager", "--max-model-len", strconv.Itoa(maxContext),
		"--max-num-seqs", strconv.Itoa(seats), "--max-num-batched-tokens", strconv.Itoa(chunk), "--enable-prefix-caching", "--enable-prompt-tokens-details",
		"--block-size", strconv.Itoa(block), "--num-gpu-blocks-override", strconv.Itoa(kvSize/block))
}

// startLimit bounds vLLM's start, which takes 40 s alone on two cores.
const startLimit = 5 * time.Minute

func (s *server) awaitReady(t *testing.T) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		resp, err := http.Get("http://" + s.addr + "/health")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if !s.running() || time.Since(begun) > startLimit {
			t.Fatalf("%s does not start: running %v, after %v", s.name, s.running(), time.Since(begun))
		}
	}
}

// page is /metrics as it stands.
func (s *server) page(t *testing.T) string {
	t.Helper()
	return get(t, "http://"+s.addr+"/metrics")
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", url, resp.StatusCode, err)
	}
	return string(body)
}

// counters are the values of vLLM's page by name, series of a name added up, read without weir's parser.
type counters map[string]float64

var sampleLine = regexp.MustCompile(`(?m)^([a-z_:]+)(?:{.*})? (\S+)$`)

func read(page string) counters {
	c := counters{}
	for _, m := range sampleLine.FindAllStringSubmatch(page, -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			panic(err) // vLLM writes no such line
		}
		c[strings.TrimPrefix(m[1], "vllm:")] += v
	}
	return c
}

func (s *server) counters(t *testing.T) counters {
	t.Helper()
	return read(s.page(t))
}

// tokens is how many tokens a text is, by vLLM's own tokenizer.
func (s *server) tokens(t *testing.T, text string) int {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"model": model, "prompt": text})
	resp, err := http.Post("http://"+s.addr+"/tokenize", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var told struct{ Count int }
	if err := json.NewDecoder(resp.Body).Decode(&told); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("/tokenize: status %d, %v", resp.StatusCode, err)
	}
	return told.Count
}
