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

// TestSimulatedReplicas routes over simulated model servers with prefix caches, and talks to them with the openai
// package.
func TestSimulatedReplicas(t *testing.T) {
	python := openAIPackage(t)
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
				if version != envoy.Newest { // the package sees HTTP, which TestThroughEnvoy holds alike on both
					return
				}
				r.stages(t, []stage{{"the openai package", func(t *testing.T, r *rig) { python(t, r.front+"/v1") }}})
				r.edge.stop()
				r.serve(t, 1)
				r.stages(t, []stage{{"the openai package is refused", func(t *testing.T, r *rig) {
					leave := r.occupyLab(t)
					python(t, r.front+"/v1", "limited")
					for _, f := range leave {
						f()
					}
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

func (r *rig) ask(t *testing.T, system, user string) answer {
	t.Helper()
	body := fmt.Sprintf(`{"model": %q, "max_tokens": 1, "messages": [{"role": "system", "content": %q}, {"role": "user", "content": %q}]}`, labModel, system, user)
	got := exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+"/v1/chat/completions", body))
	r.drained(t) // or the next one finds this one's work still ahead of it
	var page struct {
		Usage struct {
			Prompt  int `json:"prompt_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.Unmarshal([]byte(got.body), &page); err != nil || got.status != 200 {
		t.Fatalf("status %d, %v in %s", got.status, err, got.body)
	}
	return answer{got.header.Get("x-replica"), page.Usage.Prompt, page.Usage.Details.Cached}
}

// sharedPrefixHits sends pairs of prompts with a long prefix of their own: the second of a pair lands on the replica of
// the first and finds the prefix in its cache, and the pairs are spread.
func sharedPrefixHits(t *testing.T, r *rig) {
	used := map[string]bool{}
	for i := range 12 {
		system := strings.Repeat(fmt.Sprintf("You are assistant number %d. ", i), 300)
		first, second := r.ask(t, system, "What is a weir?"), r.ask(t, system, "What is a dam?")
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

// occupyLab takes the one seat of each replica with a long answer.
func (r *rig) occupyLab(t *testing.T) (leave []context.CancelFunc) {
	t.Helper()
	for range r.addrs {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		leave = append(leave, cancel)
		body := fmt.Sprintf(`{"model": %q, "max_tokens": 100000, "stream": true, "prompt": "a long answer"}`, labModel)
		resp, err := http.DefaultClient.Do(newRequest(t, "POST", r.front+"/v1/completions", body).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
	}
	return leave
}

// openAI is the openai package that the test uses, from PyPI.
const openAI = "3.57.0"

// openAIPackage fetches the package into .tools/ where needed, and returns what runs testdata/openai_client.py.
func openAIPackage(t *testing.T) (run func(t *testing.T, args ...string)) {
	t.Helper()
	fetch := exec.Command(filepath.Join("..", ".ci", "pypi"), "openai", openAI)
	dir, err := fetch.Output()
	if err != nil {
		t.Fatalf("the openai package: %v", err)
	}
	return func(t *testing.T, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "python3", append([]string{filepath.Join("testdata", "openai_client.py")}, args...)...)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+strings.TrimSpace(string(dir)), "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=*")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}
