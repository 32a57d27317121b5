package envoy_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/route"
)

// occupy takes the one seat of each replica with an endless answer, and returns what ends each.
func (r *rig) occupy(t *testing.T) (leave []context.CancelFunc) {
	t.Helper()
	for range r.addrs {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		leave = append(leave, cancel)
		r.stream(t, ctx, "events=100000&every=20ms")
	}
	return leave
}

// send sends a request from a goroutine.
func (r *rig) send(t *testing.T, ctx context.Context, headers ...string) <-chan reply {
	t.Helper()
	req := newRequest(t, "POST", r.front+"/v1/chat/completions", chat).WithContext(ctx)
	for ; len(headers) > 0; headers = headers[2:] {
		req.Header.Set(headers[0], headers[1])
	}
	done := make(chan reply, 1)
	go func() {
		got, _ := try(http.DefaultClient, req) // a failure is a reply of status 0
		done <- got
	}()
	return done
}

// holdFor is longer than message_timeout of the bootstrap: in BUFFERED only weir's override carries a hold past it.
const holdFor = 1300 * time.Millisecond

// heldGoesOn holds a request for longer than Envoy's message_timeout, and lets it go on when a seat is free.
func heldGoesOn(t *testing.T, r *rig) {
	leave := r.occupy(t)
	done := r.send(t, t.Context())
	eventually(t, "the request is held", func() bool { return r.held() == 1 })
	time.Sleep(holdFor)
	if n := r.held(); n != 1 {
		t.Fatalf("%d held after %v, want 1", n, holdFor)
	}
	leave[0]()
	if got := <-done; got.status != 200 || got.took < holdFor {
		t.Errorf("status %d after %v", got.status, got.took)
	}
	var all []ended
	eventually(t, "the held request has ended", func() bool {
		all = append(all, r.edge.take()...)
		return len(all) == 2
	})
	if e := all[1]; e.Served != route.First || e.Wait < holdFor || e.Outcome != route.Answered {
		t.Errorf("served %v after a wait of %v, outcome %v", e.Served, e.Wait, e.Outcome)
	}
	for _, f := range leave {
		f()
	}
}

// heldClientLeaves wants the place of a client that leaves while held to be free at once.
func heldClientLeaves(t *testing.T, r *rig) {
	leave := r.occupy(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := r.send(t, ctx)
	eventually(t, "the request is held", func() bool { return r.held() == 1 })
	cancel()
	<-done
	if e := r.oneEnded(t); e.Outcome != route.LeftHeld || r.held() != 0 {
		t.Errorf("outcome %v, %d held", e.Outcome, r.held())
	}
	for _, f := range leave {
		f()
	}
}

// deadlineIs429 wants an OpenAI error object and Retry-After when the deadline passes at the gate.
func deadlineIs429(t *testing.T, r *rig) {
	leave := r.occupy(t)
	got := <-r.send(t, t.Context(), "x-weir-deadline", "300ms")
	var object struct {
		Error struct{ Message, Type, Code string }
	}
	err := json.Unmarshal([]byte(got.body), &object)
	after, rerr := strconv.Atoi(got.header.Get("retry-after"))
	if got.status != 429 || err != nil || rerr != nil || after < 1 || object.Error.Type != "rate_limit_error" || object.Error.Message == "" ||
		got.header.Get("content-type") != "application/json" || got.took < 300*time.Millisecond {
		t.Errorf("after %v: status %d, header %v, body %s", got.took, got.status, got.header, got.body)
	}
	if e := r.oneEnded(t); e.Outcome != route.Late {
		t.Errorf("outcome %v", e.Outcome)
	}
	for _, f := range leave {
		f()
	}
}
