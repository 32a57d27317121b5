package envoy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weirproxy/weir/envoy"
	lab "github.com/weirproxy/weir/pkg/lab/replica"
	"github.com/weirproxy/weir/pkg/lab/step"
)

const labModel = "lab-model"

// startLab serves a simulated model server and returns its address.
func startLab(t *testing.T, name string) string {
	t.Helper()
	profile, err := step.Lookup("8B")
	if err != nil {
		t.Fatal(err)
	}
	s, err := lab.New(lab.Config{Name: name, Model: labModel, Profile: profile, Speed: 10})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("replica: %v", err)
		}
	})
	return l.Addr().String()
}

// TestSimulatedReplicas routes over simulated model servers with prefix caches, and talks to them with the packages of
// both APIs.
func TestSimulatedReplicas(t *testing.T) {
	all := packages(t)
	eachVersion(t, func(t *testing.T, path string) {
		version, err := envoy.Version(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []envoy.Mode{envoy.Buffered, envoy.Streamed} {
			o := rigOptions{mode: mode}
			for i := range 4 {
				o.addrs = append(o.addrs, startLab(t, fmt.Sprintf("replica-%d", i)))
			}
			r := startRig(t, path, o)
			t.Run(string(mode), func(t *testing.T) {
				t.Parallel()
				r.serve(t, 0)
				r.stages(t, []stage{{"a shared prefix hits the cache", sharedPrefixHits}})
				if version != envoy.Newest { // the packages see HTTP, which TestThroughEnvoy holds alike on both
					return
				}
				r.stages(t, []stage{{"the packages are served", func(t *testing.T, r *rig) { all(t, r.front) }}})
				r.edge.stop()
				r.serve(t, 1)
				r.stages(t, []stage{{"the packages are refused", func(t *testing.T, r *rig) {
					long := fmt.Sprintf(`{"model": %q, "max_tokens": 100000, "stream": true, "prompt": "a long answer"}`, labModel)
					defer r.occupyBy(t, "/v1/completions", long).end()
					all(t, r.front, "limited")
					done := make(chan struct{})
					t.Cleanup(func() { <-done })
					go func() {
						defer close(done)
						all(t, r.front, "stopped")
					}()
					r.awaitHeld(t, len(clients))
					r.edge.stop()
					<-done
				}}})
			})
		}
	})
}

// answer is what tells of a prefix cache.
type answer struct {
	replica        string
	prompt, cached int
}

// conversations are the APIs in which a conversation comes, each with a body for a model, what the system says and what
// the user does.
var conversations = map[string]string{
	"/v1/chat/completions": `{"model": %q, "max_tokens": 1, "messages": [{"role": "system", "content": %q}, {"role": "user", "content": %q}]}`,
	"/v1/messages":         `{"model": %q, "max_tokens": 1, "system": [{"type": "text", "text": %q}], "messages": [{"role": "user", "content": %q}]}`,
	"/v1/responses":        `{"model": %q, "max_output_tokens": 1, "instructions": %q, "input": [{"role": "user", "content": [{"type": "input_text", "text": %q}]}]}`,
}

func (r *rig) ask(t *testing.T, path, system, user string) answer {
	t.Helper()
	got := exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+path, fmt.Sprintf(conversations[path], labModel, system, user)))
	r.drained(t) // or the next one finds this one's work still ahead of it
	type details struct {
		Cached int `json:"cached_tokens"`
	}
	var page struct {
		Usage struct {
			Prompt   int     `json:"prompt_tokens"`
			Details  details `json:"prompt_tokens_details"`
			Input    int     `json:"input_tokens"` // of responses; of messages without what is cached
			Inputs   details `json:"input_tokens_details"`
			FromRead int     `json:"cache_read_input_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(got.body), &page); err != nil || got.status != 200 {
		t.Fatalf("status %d, %v in %s", got.status, err, got.body)
	}
	u := page.Usage
	return answer{got.header.Get("x-replica"), u.Prompt + u.Input + u.FromRead, u.Details.Cached + u.Inputs.Cached + u.FromRead}
}

// sharedPrefixHits sends pairs of prompts with a long prefix of their own, in each API: the second of a pair lands on the
// replica of the first and finds the prefix in its cache, and the pairs are spread.
func sharedPrefixHits(t *testing.T, r *rig) {
	for path := range conversations {
		t.Run(path, func(t *testing.T) { r.pairs(t, path) })
	}
}

func (r *rig) pairs(t *testing.T, path string) {
	used := map[string]bool{}
	for i := range 12 {
		system := strings.Repeat(fmt.Sprintf("You are assistant number %d of %s. ", i, path), 300)
		first, second := r.ask(t, path, system, "What is a weir?"), r.ask(t, path, system, "What is a dam?")
		if first.cached > first.prompt/10 {
			t.Errorf("pair %d: %d of %d tokens of a new prompt are cached", i, first.cached, first.prompt)
		}
		if second.replica != first.replica || second.cached < second.prompt*9/10 {
			t.Errorf("pair %d: %s after %s, %d of %d tokens cached", i, second.replica, first.replica, second.cached, second.prompt)
		}
		used[first.replica] = true
	}
	if len(used) < 3 {
		t.Errorf("12 prefixes use %d of 4 replicas", len(used))
	}
}

// clients are the packages that the test uses, from PyPI, and the base URL of each below Envoy's.
var clients = []struct{ name, version, base string }{{"openai", "3.57.0", "/v1"}, {"anthropic", "2.14.0", ""}}

// packages fetches the packages into .tools/ where needed, and returns what runs the program in testdata of each at once.
func packages(t *testing.T) (run func(t *testing.T, front string, args ...string)) {
	t.Helper()
	var paths []string
	for _, c := range clients {
		dir, err := exec.Command(filepath.Join("..", ".ci", "pypi"), c.name, c.version).Output()
		if err != nil {
			t.Fatalf("the package %s: %v", c.name, err)
		}
		paths = append(paths, strings.TrimSpace(string(dir)))
	}
	return func(t *testing.T, front string, args ...string) {
		t.Helper()
		var wg sync.WaitGroup
		for i, c := range clients {
			wg.Go(func() {
				cmd := exec.CommandContext(t.Context(), "python3", append([]string{filepath.Join("testdata", c.name+"_client.py"), front + c.base}, args...)...)
				cmd.Env = append(os.Environ(), "PYTHONPATH="+paths[i], "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=*")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", c.name, err, out)
				}
			})
		}
		wg.Wait()
	}
}
