package envoy_test

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	check "github.com/weirproxy/weir/pkg/bootstrap"
)

// breakers are those of the replicas' cluster in the bootstrap.
const breakers = "[{max_connections: 2560, max_pending_requests: 1280, max_requests: 1280, max_retries: 1280}]"

// TestBreakers is llm-d#1582: what the replicas' breaker lets pass at once, and what comes beyond it.
func TestBreakers(t *testing.T) {
	path := find(t, envoy.Newest)
	manyFiles(t, 8192)
	for _, c := range []struct {
		name, breakers string
		show           func(t *testing.T, r *rig)
	}{
		// As the comment there says, for 4 x 700 seats and a quarter more.
		{"2,500 answers at once", "[{max_connections: 7000, max_pending_requests: 3500, max_requests: 3500, max_retries: 3500}]", manyAnswers},
		{"overflow", "[{max_connections: 8, max_pending_requests: 4, max_requests: 4, max_retries: 4}]", overflowIsSeen},
	} {
		r := startRig(t, path, rigOptions{edits: append([]string{"{profile: 8B}", "{profile: 8B, seats: 700}", breakers, c.breakers}, longTimeouts...)})
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r.serve(t, 700)
			c.show(t, r)
		})
	}
}

// manyAnswers has 2,500 streamed answers under way through one Envoy. Each holds a stream to weir, all the time.
func manyAnswers(t *testing.T, r *rig) {
	const n = 2500
	ends, hashes := r.crowd(t, n, "interactive", "hold=1")
	var under []asked
	for range n {
		a := <-ends
		if a.status() != 200 {
			t.Fatalf("status %d, %v, %s", a.status(), a.err, a.text)
		}
		under = append(under, a)
	}
	if leases, streams, active := r.leases(), r.Server.Stats().Streams, r.stat(t, "cluster.replicas.upstream_rq_active"); leases != n || streams != n || active != n {
		t.Errorf("%d leases, %d streams, %v requests at the replicas: want %d of each", leases, streams, active, n)
	}
	began := time.Now()
	r.release()
	for _, a := range under {
		text, err := io.ReadAll(a.resp.Body)
		a.resp.Body.Close()
		if err != nil || string(text) != heldEvent {
			t.Fatalf("an answer of %q, %v", text, err)
		}
	}
	r.drained(t)
	t.Logf("%d answers end within %v", n, time.Since(began))
	if got := r.arrived(hashes); got != n {
		t.Errorf("%d requests reach the replicas, want %d", got, n)
	}
	for _, name := range []string{"replicas", "weir"} {
		for _, what := range []string{"pending", "active"} {
			if n := r.stat(t, "cluster."+name+".upstream_rq_"+what+"_overflow"); n != 0 {
				t.Errorf("cluster %s: %v %s overflow", name, n, what)
			}
		}
	}
}

// overflowIsSeen has four answers under way where the breaker lets four pass: the next, for which weir has a seat, is a
// 503 of Envoy's own, which is counted, logged and not tried again.
func overflowIsSeen(t *testing.T, r *rig) {
	if got := rulesOf(t, filepath.Join(r.Dir, "envoy.yaml"), check.Oldest); !slices.Equal(got, []string{"replicas-breaker"}) {
		t.Errorf("weir check finds %v", got)
	}
	r.occupy(t)
	for range 3 {
		got := <-r.send(t, t.Context())
		if got.status != 503 || got.header.Get("x-envoy-overloaded") != "true" {
			t.Errorf("status %d, header %v, body %q", got.status, got.header, got.body)
		}
	}
	if all := r.takeSeen(); len(all) > 0 {
		t.Errorf("%d requests arrive", len(all))
	}
	for name, want := range map[string]float64{"upstream_rq_active_overflow": 3, "upstream_rq_retry": 0, "circuit_breakers.default.rq_open": 1} {
		if v := r.stat(t, "cluster.replicas."+name); v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	lines := r.accessLog(t, `"flags":"UO"`, 3)
	for _, line := range lines {
		if len(lines) != 3 || !strings.Contains(line, `"details":"upstream_reset_before_response_started{overflow}"`) {
			t.Errorf("of %d lines: %s", len(lines), line)
		}
	}
}
