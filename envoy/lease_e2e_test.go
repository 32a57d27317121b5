package envoy_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/route"
)

// endless asks for an answer of half an hour, with an event each pace.
const pace = 20 * time.Millisecond

var endless = "events=100000&every=" + pace.String()

// stream begins a request whose answer is events.
func (r *rig) stream(t *testing.T, ctx context.Context, events string) *http.Response {
	t.Helper()
	return r.begin(t, ctx, "/v1/chat/completions?"+events, chat)
}

// begin starts a request, and returns when the headers of its answer are there.
func (r *rig) begin(t *testing.T, ctx context.Context, target, body string) *http.Response {
	t.Helper()
	resp, err := http.DefaultClient.Do(newRequest(t, "POST", r.front+target, body).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// untilEvent reads an answer up to an event.
func untilEvent(t *testing.T, lines *bufio.Scanner, n int) {
	t.Helper()
	for want := fmt.Sprintf(eventLine, n); lines.Text() != want; {
		if !lines.Scan() {
			t.Fatalf("the answer ends before event %d: %v", n, lines.Err())
		}
	}
}

// goesOn wants an endless answer, which began at a time, to have an event that is sent after now: what lies in buffers
// proves nothing.
func goesOn(t *testing.T, answer *http.Response, began time.Time) {
	t.Helper()
	untilEvent(t, bufio.NewScanner(answer.Body), int(time.Since(began)/pace)+1)
}

// leaseLivesAsAnswer streams an answer for a second and until it is let go: its lease is there at every event, and gone
// after the last.
func leaseLivesAsAnswer(t *testing.T, r *rig) {
	early := r.Server.Stats().Early
	began := time.Now()
	lines := bufio.NewScanner(r.stream(t, t.Context(), "events=20&every=50ms&hold=1").Body)
	for i := range 20 {
		untilEvent(t, lines, i)
		if n := r.leases(); n != 1 {
			t.Fatalf("%d leases %v after the request began, and its answer is under way", n, time.Since(began))
		}
	}
	r.release()
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
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
	resp := r.stream(t, ctx, endless)
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
