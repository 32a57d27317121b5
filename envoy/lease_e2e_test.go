package envoy_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/route"
)

// stream starts a request whose answer is n events, and returns when its headers are there.
func (r *rig) stream(t *testing.T, ctx context.Context, events string) *http.Response {
	t.Helper()
	resp, err := http.DefaultClient.Do(newRequest(t, "POST", r.front+"/v1/chat/completions?"+events, chat).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// leaseLivesAsAnswer streams an answer for a second: its lease is there at every event, and gone after the last.
func leaseLivesAsAnswer(t *testing.T, r *rig) {
	early := r.Server.Stats().Early
	began := time.Now()
	resp := r.stream(t, t.Context(), "events=20&every=50ms")
	buf := make([]byte, 4096)
	for {
		if n := r.leases(); n != 1 {
			t.Fatalf("%d leases %v after the request began, and its answer is under way", n, time.Since(began))
		}
		if _, err := resp.Body.Read(buf); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(began)
	e := r.oneEnded(t)
	if r.leases() != 0 || e.Outcome != route.Answered || e.after < time.Second || e.after > took+patience/3 {
		t.Errorf("an answer of %v: lease of %v, outcome %v", took, e.after, e.Outcome)
	}
	if n := r.Server.Stats().Early; n != early {
		t.Errorf("%d streams ended early", n-early)
	}
}

// abortReturnsLease has a client leave in the middle of its answer.
func abortReturnsLease(t *testing.T, r *rig) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp := r.stream(t, ctx, "events=10000&every=20ms")
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if n := r.leases(); n != 1 {
		t.Fatalf("%d leases while the answer is under way, want 1", n)
	}
	cancel()
	if e := r.oneEnded(t); e.Outcome != route.Answered || r.leases() != 0 {
		t.Errorf("outcome %v, %d leases after the client left", e.Outcome, r.leases())
	}
}
