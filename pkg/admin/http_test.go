package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
)

// TestDownReplica: a replica that fails is named by /metrics and /debug/pool.
func TestDownReplica(t *testing.T) {
	r := router("llm", 2)
	a := newAdmin(r)
	r.Refuse(time.Now().Add(time.Hour), "10.0.0.1:8000") // an hour on, so that it is not over while the test runs
	got := values(scrape(t, a))
	if got["weir_replica_down endpoint=10.0.0.0:8000 pool=llm"] != 0 || got["weir_replica_down endpoint=10.0.0.1:8000 pool=llm"] != 1 {
		t.Errorf("down: %v", got)
	}
	if got["weir_pool_replicas pool=llm"] != 2 || got["weir_pool_usable_replicas pool=llm"] != 1 {
		t.Errorf("usable: %v", got)
	}
	if _, page := get(t, a, http.MethodGet, "/debug/pool"); strings.Count(page, `"down": true`) != 1 || strings.Count(page, `"down": false`) != 1 {
		t.Errorf("/debug/pool: %s", page)
	}
}

// ai-dynamo/dynamo#4904: after a restart a few of many workers were in use while health said that all was fine.
func TestReadyz(t *testing.T) {
	full, empty := newAdmin(router("llm", 1)), newAdmin(router("llm", 1), router("bare", 0))
	sixteen := router("llm", 16)
	failing := newAdmin(sixteen)
	kill := func(from, to int) func(*Admin) {
		return func(*Admin) {
			for i := from; i < to; i++ {
				sixteen.Refuse(time.Now().Add(time.Hour), fmt.Sprintf("10.0.0.%d:8000", i)) // an hour on: it is not over in this test
			}
		}
	}
	for _, s := range []struct {
		name  string
		admin *Admin
		set   func(*Admin)
		code  int
		says  string
	}{
		{"at the start", full, nil, 503, "does not take requests"},
		{"the server listens", full, func(a *Admin) { a.SetReady(true) }, 200, "ready\n"},
		{"draining", full, func(a *Admin) { a.SetReady(false) }, 503, "drains"},
		{"a pool without replicas", empty, func(a *Admin) { a.SetReady(true) }, 503, "pool bare has no replica"},
		{"all are usable", failing, func(a *Admin) { a.SetReady(true) }, 200, "ready\npool llm: 16 of 16 replicas usable, 0 with fresh metrics\n"},
		{"metrics of two are read", failing, func(*Admin) {
			for _, e := range []string{"10.0.0.0:8000", "10.0.0.1:8000"} {
				sixteen.Observe(time.Now(), e, pool.Sample{At: time.Now()})
			}
		}, 200, "ready\npool llm: 16 of 16 replicas usable, 2 with fresh metrics\n"},
		{"two are left", failing, kill(2, 16), 200, "ready\npool llm: 2 of 16 replicas usable, 2 with fresh metrics\n"},
		{"none is left", failing, kill(0, 2), 503, "pool llm has no usable replica\npool llm: 0 of 16 replicas usable"},
		{"no pool", newAdmin(), func(a *Admin) { a.SetReady(true) }, 503, "no pool"},
	} {
		if s.set != nil {
			s.set(s.admin)
		}
		if code, body := get(t, s.admin, http.MethodGet, "/readyz"); code != s.code || !strings.Contains(body, s.says) {
			t.Errorf("%s: %d %q, want %d %q", s.name, code, body, s.code, s.says)
		}
		if code, _ := get(t, s.admin, http.MethodGet, "/healthz"); code != 200 {
			t.Errorf("%s: /healthz is %d", s.name, code)
		}
	}
}

func TestDebugPool(t *testing.T) {
	a, b := router("llm", 2), router("bare", 0)
	now := time.Now()
	a.Route(now, &route.Request{Path: "/v1/chat/completions", Body: []byte(chatBody)})
	a.Observe(now, "10.0.0.1:8000", pool.Sample{At: now, Waiting: 3, HasWaiting: true})
	code, body := get(t, newAdmin(a, b), http.MethodGet, "/debug/pool")
	var got []struct {
		Pool     string
		Held     map[string]int
		Replicas []struct {
			Endpoint string
			Leases   int
			Pending  float64 `json:"pending_tokens"`
			Scrape   *struct{ Waiting, Running *float64 }
		}
	}
	if err := json.Unmarshal([]byte(body), &got); code != 200 || err != nil {
		t.Fatalf("%d, %v", code, err)
	}
	if len(got) != 2 || got[0].Pool != "llm" || got[1].Pool != "bare" || len(got[0].Replicas) != 2 || len(got[0].Held) != 2 {
		t.Fatalf("got %+v", got)
	}
	r := got[0].Replicas
	if r[0].Leases+r[1].Leases != 1 || r[0].Pending+r[1].Pending <= 0 || r[0].Scrape != nil ||
		r[1].Scrape == nil || r[1].Scrape.Running != nil || *r[1].Scrape.Waiting != 3 {
		t.Errorf("replicas %s", body)
	}
	if !strings.Contains(body, "\n    \"pool\": \"llm\"") {
		t.Errorf("not indented: %s", body)
	}
}

func TestPathsAndMethods(t *testing.T) {
	a := newAdmin(router("llm", 1))
	for _, path := range []string{"/", "/metrics", "/healthz", "/readyz", "/debug/pool", "/debug/gate"} {
		_, index := get(t, a, http.MethodGet, "/")
		if !strings.Contains(index, path) {
			t.Errorf("the index does not list %s", path)
		}
		get200, _ := get(t, a, http.MethodGet, path)
		head, _ := get(t, a, http.MethodHead, path)
		post, _ := get(t, a, http.MethodPost, path)
		if get200 != head || post != http.StatusMethodNotAllowed {
			t.Errorf("%s: GET %d, HEAD %d, POST %d", path, get200, head, post)
		}
	}
	if code, _ := get(t, a, http.MethodGet, "/debug"); code != http.StatusNotFound {
		t.Errorf("/debug is %d", code)
	}
}

func TestRunServesUntilItsContextEnds(t *testing.T) {
	a := newAdmin(router("llm", 1))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- a.serve(ctx, ln) }()
	resp, err := http.Get("http://" + ln.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 200 || string(body) != "ok\n" {
		t.Errorf("/healthz: %d %q", resp.StatusCode, body)
	}
	taken := New(ln.Addr().String(), nil, slog.New(slog.DiscardHandler))
	if err := taken.Run(ctx); err == nil {
		t.Error("Run on a taken address is no error")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("serve = %v", err)
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}
