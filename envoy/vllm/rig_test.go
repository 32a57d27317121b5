//go:build vllm

package vllm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
)

const root = "../.." // of the checkout

// rig is two vLLMs behind Envoy and bin/weir, and all that was asked of them.
type rig struct {
	*envoy.Proc
	test   *testing.T // with which the processes end, whatever stage starts them
	dir    string
	front  string // URL through weir
	admin  string // URL of weir's
	config []byte // Envoy's and weir's file
	weir   *proc
	vllms  []*server
	mu     sync.Mutex
	asked  []*answer // by id
	notes  []string  // rows of a table
}

func startRig(t *testing.T) *rig {
	t.Helper()
	base, err := filepath.Abs(filepath.Join(root, ".run"))
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{test: t, dir: filepath.Join(base, fmt.Sprintf("vllm-%d", os.Getpid()))}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() { // else its logs stay
			os.RemoveAll(r.dir)
			os.Remove(base) // only if no other run is in it
		}
	})
	r.makeModel(t)
	ports, err := envoy.FreePorts(6)
	if err != nil {
		t.Fatal(err)
	}
	var addrs []string
	for i := range 2 {
		s := &server{name: fmt.Sprintf("vllm-%d", i), addr: fmt.Sprintf("127.0.0.1:%d", ports[4+i])}
		s.start(r, i)
		r.vllms, addrs = append(r.vllms, s), append(addrs, s.addr)
	}
	r.front, r.admin = fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[3])
	r.config, err = envoy.Bootstrap(envoy.Params{Front: ports[0], Plain: ports[1], Admin: ports[2], WeirAdmin: ports[3], Replicas: addrs})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.vllms {
		s.awaitReady(t)
	}
	r.startWeir(t, r.config)
	r.startEnvoy(t)
	return r
}

func (r *rig) makeModel(t *testing.T) {
	t.Helper()
	texts, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"model.py", filepath.Join(r.dir, "model"), filepath.Join(root, "README.md"), filepath.Join(root, "DESIGN.md")}
	if out, err := exec.Command(*python, append(args, texts...)...).CombinedOutput(); err != nil {
		t.Fatalf("model.py: %v\n%s", err, out)
	}
}

// startWeir runs bin/weir, with config as the file that it and Envoy read, in the place of the one that ran.
func (r *rig) startWeir(t *testing.T, config []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "envoy.yaml"), config, 0o644); err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(filepath.Join(root, "bin", "weir"))
	if err != nil {
		t.Fatal(err)
	}
	if r.weir != nil {
		r.weir.stop()
	}
	r.weir = startProc(r.test, r.dir, "weir", nil, path, "serve", "--bootstrap", "envoy.yaml")
	eventually(t, "weir has scraped both replicas", func() bool {
		resp, err := http.Get(r.admin + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		for _, p := range r.pool(t).Replicas {
			if p.Scrape == nil {
				return false
			}
		}
		return resp.StatusCode == http.StatusOK
	})
	if r.Proc != nil {
		r.awaitWeir(t)
	}
}

func (r *rig) startEnvoy(t *testing.T) {
	t.Helper()
	path, err := envoy.Find("")
	if err == nil {
		r.Proc, err = envoy.Start(t.Context(), envoy.Options{Path: path, Config: r.config, Dir: r.dir})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Proc.Stop)
	r.awaitWeir(t)
}

// awaitWeir waits until Envoy sends requests to weir.
func (r *rig) awaitWeir(t *testing.T) {
	t.Helper()
	eventually(t, "Envoy sees weir", func() bool {
		stats, err := r.Stats("cluster.weir.membership_")
		return err == nil && stats["cluster.weir.membership_healthy"] == 1
	})
}

// live is what /debug/pool tells of a pool.
type live struct {
	Held     map[string]int
	Replicas []replica
}

type replica struct {
	Endpoint      string
	Leases        int
	PendingTokens float64 `json:"pending_tokens"`
	KV            float64
	KVTokens      float64 `json:"kv_tokens"`
	Down          bool
	Foreign       float64
	Restarts      int
	Scrape        *struct {
		Running, Waiting, KV *float64
		Started              *time.Time
		InterToken           *float64 `json:"inter_token_seconds"`
		TTFT                 *float64 `json:"ttft_seconds"`
	}
}

func (r *rig) pool(t *testing.T) live {
	t.Helper()
	var pools []live
	if err := json.Unmarshal([]byte(get(t, r.admin+"/debug/pool")), &pools); err != nil || len(pools) != 1 {
		t.Fatalf("/debug/pool: %d pools, %v", len(pools), err)
	}
	return pools[0]
}

// of is what weir tells of one replica.
func (r *rig) of(t *testing.T, s *server) replica {
	t.Helper()
	for _, p := range r.pool(t).Replicas {
		if p.Endpoint == s.addr {
			return p
		}
	}
	t.Fatalf("/debug/pool has no %s", s.addr)
	return replica{}
}

// pace is what weir takes a prompt token to cost at a vLLM, in seconds.
func (r *rig) pace(t *testing.T, s *server) float64 {
	t.Helper()
	var pools []struct {
		Replicas []struct {
			Endpoint string
			Token    float64 `json:"prompt_token_seconds"`
		}
	}
	if err := json.Unmarshal([]byte(get(t, r.admin+"/debug/knee")), &pools); err != nil || len(pools) != 1 {
		t.Fatalf("/debug/knee: %d pools, %v", len(pools), err)
	}
	for _, p := range pools[0].Replicas {
		if p.Endpoint == s.addr && p.Token > 0 {
			return p.Token
		}
	}
	t.Fatalf("/debug/knee has no pace of %s", s.addr)
	return 0
}

// metric is a series of weir's.
func (r *rig) metric(t *testing.T, series string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(get(t, r.admin+"/metrics"))
	if m == nil {
		t.Fatalf("weir's metrics have no %s", series)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// entry is a line of Envoy's access log.
type entry struct {
	Path     string
	Code     int
	Attempts int
	Served   string
	Weir     decision
}

// decision is weir's decision record.
type decision map[string]any

// number is a field of it, which weir leaves out when it is 0.
func (r decision) number(name string) float64 {
	v, _ := r[name].(float64)
	return v
}

func (r decision) text(name string) string {
	v, _ := r[name].(string)
	return v
}

// settle waits until everything asked has ended, in weir, in vLLM and in Envoy's access log, and gives each answer its line there.
func (r *rig) settle(t *testing.T) {
	t.Helper()
	eventually(t, "weir has no lease, and vLLM nothing to do", func() bool {
		for _, s := range r.vllms {
			if c := s.counters(t); r.of(t, s).Leases != 0 || c["num_requests_running"]+c["num_requests_waiting"] != 0 {
				return false
			}
		}
		return true
	})
	var lines map[int][]entry
	eventually(t, "Envoy has logged every request", func() (done bool) {
		lines = r.accessLog(t)
		return len(lines) >= len(r.asked)
	})
	for _, a := range r.asked {
		if len(lines[a.id]) != 1 {
			t.Errorf("request %d has %d lines in Envoy's log", a.id, len(lines[a.id]))
			continue
		}
		a.entry = lines[a.id][0]
	}
}

func (r *rig) accessLog(t *testing.T) map[int][]entry {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, "access.log"))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[int][]entry{}
	for line := range strings.Lines(string(text)) {
		var e entry
		err := json.Unmarshal([]byte(line), &e)
		_, query, _ := strings.Cut(e.Path, "?id=")
		id, idErr := strconv.Atoi(query)
		if err := errors.Join(err, idErr); err != nil && strings.HasSuffix(line, "\n") {
			t.Fatalf("Envoy's log: %v in %s", err, line)
		} else if err == nil {
			lines[id] = append(lines[id], e)
		}
	}
	return lines
}

// patience bounds the wait for what takes seconds at most.
const patience = time.Minute

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
