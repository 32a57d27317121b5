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

// answers are what ends each of some that have no end.
type answers []context.CancelFunc

func (a answers) end() {
	for _, end := range a {
		end()
	}
}

// occupy takes the one seat of each replica, but for those that are taken, with an endless answer.
func (r *rig) occupy(t *testing.T) answers {
	t.Helper()
	return r.occupyBy(t, "/v1/chat/completions?"+endless, chat)
}

func (r *rig) occupyBy(t *testing.T, target, body string) (all answers) {
	t.Helper()
	for range 3 * len(r.addrs) { // a busy machine has some go past weir, where message_timeout is short
		s, err := r.pool()
		if err != nil {
			t.Fatal(err)
		}
		if leasesOf(s) == len(r.addrs) {
			r.takeSeen()
			return all
		}
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		all = append(all, cancel)
		r.begin(t, ctx, target, body)
	}
	t.Fatalf("%d answers, and a seat is free", len(all))
	return nil
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

// holdFor is longer than message_timeout, also a patient one: in BUFFERED only weir's override carries a hold past it.
const holdFor = 3300 * time.Millisecond

// heldGoesOn holds a request for longer than Envoy's message_timeout, and lets it go on when a seat is free.
func heldGoesOn(t *testing.T, r *rig) {
	seats := r.occupy(t)
	defer seats.end()
	done := r.send(t, t.Context())
	r.awaitHeld(t, 1)
	time.Sleep(holdFor)
	if n := r.held(); n != 1 {
		t.Fatalf("%d held after %v, want 1", n, holdFor)
	}
	seats[0]()
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
}

// heldClientLeaves wants the place of a client that leaves while held to be free at once.
func heldClientLeaves(t *testing.T, r *rig) {
	defer r.occupy(t).end()
	ctx, cancel := context.WithCancel(t.Context())
	done := r.send(t, ctx)
	r.awaitHeld(t, 1)
	cancel()
	<-done
	if e := r.oneEnded(t); e.Outcome != route.LeftHeld || r.held() != 0 {
		t.Errorf("outcome %v, %d held", e.Outcome, r.held())
	}
}

// deadlineIs429 wants an OpenAI error object and Retry-After when the deadline passes at the gate.
func deadlineIs429(t *testing.T, r *rig) {
	defer r.occupy(t).end()
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
}
