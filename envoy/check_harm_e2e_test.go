package envoy_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/route"
)

// holdIsCut wants a held request to end with a status after about a second, without a seat free.
func holdIsCut(status int, after time.Duration) func(t *testing.T, r *rig) {
	return func(t *testing.T, r *rig) {
		r.occupy(t)
		got := <-r.send(t, t.Context())
		if got.status != status || got.took < after/2 || got.took > patience {
			t.Errorf("status %d after %v, want %d after %v", got.status, got.took, status, after)
		}
		all := r.takeSeen()
		if past := len(all) == 1 && len(all[0].picks) == 0; past != (status == 200) || len(all) > 1 {
			t.Errorf("%d arrive, without a pick %v", len(all), past)
		}
	}
}

// answerIsCut wants an answer of three seconds to end before its last event.
func answerIsCut(t *testing.T, r *rig) {
	resp := r.stream(t, t.Context(), "events=150&every=20ms")
	if text, err := io.ReadAll(resp.Body); err == nil || bytes.Contains(text, []byte(`"event": 149`)) {
		t.Errorf("the answer is whole: %d bytes, %v", len(text), err)
	}
}

// leaseEndsEarly wants no lease while an answer is under way.
func leaseEndsEarly(t *testing.T, r *rig) {
	began := time.Now()
	resp := r.stream(t, t.Context(), endless)
	eventually(t, "the lease has ended", func() bool { return r.leases() == 0 })
	goesOn(t, resp, began)
}

func servedIsUnknown(t *testing.T, r *rig) {
	r.get(t, "/v1/models")
	if e := r.oneEnded(t); e.State != route.Picked || e.Served != route.Unknown {
		t.Errorf("state %v, served %v", e.State, e.Served)
	}
}

func nothingIsPicked(t *testing.T, r *rig) {
	for range 5 {
		if got := <-r.send(t, t.Context(), pickHeader, r.addrs[0]); got.status != 200 {
			t.Errorf("status %d", got.status)
		}
		if s := r.oneSeen(t); len(s.picks) > 0 {
			t.Errorf("the pick %v arrives", s.picks)
		}
	}
}

func promptIsUnread(t *testing.T, r *rig) {
	exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+"/v1/chat/completions", chat))
	if e := r.oneEnded(t); e.State != route.Picked || e.Prompt.Model != "" {
		t.Errorf("state %v, model %q", e.State, e.Prompt.Model)
	}
}

// classIsUnread wants a client that says bulk to be of the first class, on a route that says nothing.
func classIsUnread(t *testing.T, r *rig) {
	req := newRequest(t, "POST", r.front+"/v1/chat/completions", chat)
	req.Header.Set("x-weir-class", "interactive, bulk") // the route of bulk takes bulk alone
	exchange(t, http.DefaultClient, req)
	if e := r.oneEnded(t); e.State != route.Picked || e.Class != "interactive" {
		t.Errorf("state %v, class %q", e.State, e.Class)
	}
}

// headersAreLost wants a pick that is no header, and a refusal without a time to come back.
func headersAreLost(t *testing.T, r *rig) {
	nothingIsPicked(t, r)
	r.drained(t)
	r.occupy(t)
	got := <-r.send(t, t.Context(), "x-weir-deadline", "100ms")
	if got.status != 429 || got.header.Get("retry-after") != "" {
		t.Errorf("status %d, headers %v", got.status, got.header)
	}
}

// failsWith500 wants bulk without weir to have that status, whatever the file says.
func failsWith500(t *testing.T, r *rig) {
	r.edge.stop()
	if got := <-r.send(t, t.Context(), "x-weir-class", "bulk"); got.status != 500 {
		t.Errorf("status %d", got.status)
	}
}

// goneForGood has weir go, and wants requests to fail for longer than three health checks take.
func goneForGood(t *testing.T, r *rig) {
	r.edge.stop()
	time.Sleep(3 * time.Second)
	for range 3 {
		if got := <-r.send(t, t.Context()); got.status != 503 {
			t.Errorf("status %d, %q", got.status, got.body)
		}
	}
}

// nobodyContinues has a client wait for leave to send its body, and wants none to come.
func nobodyContinues(t *testing.T, r *rig) {
	c := r.dial(t, "POST /v1/completions HTTP/1.1\nhost: x\nexpect: 100-continue\ncontent-length: 10\n\n")
	eventually(t, "weir has the request", func() bool { return r.Server.Stats().Streams == 1 })
	c.Conn.SetReadDeadline(time.Now().Add(time.Second))
	if line, err := c.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v", line, err)
	}
}

// promptIsCut sends a prompt of ten times what Envoy buffers: weir reads less than half of it.
func promptIsCut(t *testing.T, r *rig) {
	body := `{"model": "m", "prompt": "` + strings.Repeat("many words ", 60_000) + `"}`
	exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+"/v1/completions", body))
	if e, s := r.oneEnded(t), r.oneSeen(t); e.State != route.Picked || len(e.Prompt.Chain)*chain.BlockBytes > len(body)/2 || len(e.Prompt.Chain) == 0 || s.size != int64(len(body)) {
		t.Errorf("state %v, %d blocks of %d bytes, %d arrive", e.State, len(e.Prompt.Chain), len(body), s.size)
	}
}

// decisionIsNotLogged wants a request that weir picked for to have no decision in the access log.
func decisionIsNotLogged(t *testing.T, r *rig) {
	r.get(t, "/v1/models")
	if e := r.oneEnded(t); e.State != route.Picked {
		t.Errorf("state %v", e.State)
	}
	if lines := r.accessLog(t, "", 1); !strings.Contains(lines[0], `"weir":null`) {
		t.Error(lines[0])
	}
}

// bulkGoesPast has weir die while it holds bulk: that reaches the replicas without a pick, though no seat is free.
func bulkGoesPast(t *testing.T, r *rig) {
	r.occupy(t)
	done := r.send(t, t.Context(), "x-weir-class", "bulk")
	r.awaitHeld(t, 1)
	r.sever()
	if got := <-done; got.status != 200 {
		t.Errorf("status %d", got.status)
	}
	if s := r.oneSeen(t); len(s.picks) > 0 {
		t.Errorf("the pick %v arrives", s.picks)
	}
	bulk := 0
	for _, e := range r.drainedEnds(t) {
		if e.Class == "bulk" && e.Outcome != route.Answered {
			bulk++
		}
	}
	if bulk != 1 {
		t.Errorf("weir knows of %d of bulk without an answer", bulk)
	}
}

// largeGoesPast sends a body in chunks that Envoy buffers, and that is too large for weir or for its time.
func largeGoesPast(size int64) func(t *testing.T, r *rig) {
	return func(t *testing.T, r *rig) {
		if got := exchange(t, http.DefaultClient, inChunks(t, r.front+"/v1/chat/completions", bytes.NewReader(make([]byte, size)))); got.status != 200 {
			t.Errorf("status %d", got.status)
		}
		if s := r.oneSeen(t); len(s.picks) > 0 {
			t.Errorf("the pick %v arrives", s.picks)
		}
	}
}

// isTooLarge wants a body below weir's limit to be answered 413.
func isTooLarge(client *http.Client, size int64) func(t *testing.T, r *rig) {
	return func(t *testing.T, r *rig) {
		if got, err := try(client, newRequest(t, "POST", r.front+"/v1/chat/completions", string(make([]byte, size)))); err != nil || got.status != 413 {
			t.Errorf("%d bytes: status %d, %v", size, got.status, err)
		}
	}
}

// answerIsCollected wants nothing of an answer of a second before half of that is over.
func answerIsCollected(t *testing.T, r *rig) {
	began := time.Now()
	r.stream(t, t.Context(), "events=20&every=50ms")
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("it begins after %v", took)
	}
}

// clientNamesReplica stops weir, and wants each request where its client says.
func clientNamesReplica(t *testing.T, r *rig) {
	r.edge.stop()
	for range 20 {
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", chat)
		req.Header.Set(pickHeader, r.addrs[2])
		exchange(t, http.DefaultClient, req)
		if s := r.oneSeen(t); s.at != r.addrs[2] {
			t.Errorf("served by %s", s.at)
		}
	}
}

// pickIsNotServed wants some of 20 picks to end elsewhere: all of them would end right by chance once in 4^20 times.
func pickIsNotServed(t *testing.T, r *rig) {
	other := 0
	for range 20 {
		r.get(t, "/v1/models")
		if e := r.oneEnded(t); e.State == route.Picked && e.Served == route.Other {
			other++
		}
	}
	if other == 0 {
		t.Error("all 20 were served as picked")
	}
}

func clientNamesClass(t *testing.T, r *rig) {
	for _, class := range []string{"interactive", "bulk"} {
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", chat)
		req.Header.Set("x-class", class)
		exchange(t, http.DefaultClient, req)
		if e := r.oneEnded(t); e.Class != class {
			t.Errorf("class %s, the client says %s", e.Class, class)
		}
	}
}

// overflowGoesPast has as many answers under way as weir's cluster takes requests, and no seat free: the next is not
// held.
func overflowGoesPast(t *testing.T, r *rig) {
	r.occupy(t)
	if got := <-r.send(t, t.Context()); got.status != 200 {
		t.Errorf("status %d", got.status)
	}
	if s := r.oneSeen(t); len(s.picks) > 0 {
		t.Errorf("the pick %v arrives", s.picks)
	}
}

// clientNamesAnyHost reaches Envoy's own admin listener through the front.
func clientNamesAnyHost(t *testing.T, r *rig) {
	req := newRequest(t, "GET", r.front+"/ready", "")
	req.Header.Set("x-envoy-original-dst-host", r.Admin)
	if got := exchange(t, http.DefaultClient, req); got.status != 200 || !strings.HasPrefix(got.body, "LIVE") {
		t.Errorf("status %d, body %q", got.status, got.body)
	}
}
