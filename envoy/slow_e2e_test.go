package envoy_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/route"
)

// TestLongHold is ai-gateway PR#1428: with a message_timeout of half a second (200 ms there, which a busy
// machine passes by itself) a request is held for five seconds, both where
// Envoy would let it go on at that timeout and where it would refuse it, which is what bulk's route says.
func TestLongHold(t *testing.T) {
	t.Parallel() // it waits
	const hold = 5 * time.Second
	eachVersion(t, func(t *testing.T, path string) {
		eachMode(t, path, rigOptions{edits: []string{" message_timeout: 1s  ", " message_timeout: 0.5s  "}}, func(t *testing.T, r *rig) {
			r.serve(t, 1)
			leave := r.occupy(t)
			r.takeSeen()
			done := map[string]<-chan reply{}
			for _, class := range []string{"interactive", "bulk"} {
				done[class] = r.send(t, t.Context(), "x-weir-class", class)
			}
			eventually(t, "both are held", func() bool { return r.held() == 2 })
			time.Sleep(hold)
			if n := r.held(); n != 2 {
				t.Errorf("%d held after %v, want 2", n, hold)
			}
			if early := r.takeSeen(); len(early) > 0 {
				t.Errorf("%d requests went past the gate", len(early))
			}
			for _, end := range leave {
				end()
			}
			for class, got := range done {
				if got := <-got; got.status != 200 || got.took < hold {
					t.Errorf("%s: status %d after %v", class, got.status, got.took)
				}
			}
			for _, s := range r.takeSeen() {
				if len(s.picks) != 1 {
					t.Errorf("a request arrives with the picks %v", s.picks)
				}
			}
		})
	})
}

// takeSeen returns what all backends saw since the last call.
func (r *rig) takeSeen() (all []seen) {
	for _, b := range r.backends {
		all = append(all, b.take()...)
	}
	return all
}

// TestSlowSenders has 2,000 clients send a byte every two seconds. They take no place at the gate and no seat; Envoy ends
// each with 408 after request_timeout, here 12 s; and the one seat of each replica serves others all the while.
func TestSlowSenders(t *testing.T) {
	t.Parallel() // it waits
	manyFiles(t, 4096)
	edits := []string{
		"{profile: 8B}", "{profile: 8B, seats: 1}",
		"          request_timeout: 60s                  #", "          request_timeout: 12s                  #",
		" message_timeout: 1s  ", " message_timeout: 20s ", // a crowd on a busy machine
		"{timeout: 0.5s, interval", "{timeout: 20s, interval",
	}
	eachMode(t, find(t, envoy.Newest), rigOptions{edits: edits}, func(t *testing.T, r *rig) {
		const n = 2000
		r.serve(t, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
		defer cancel()
		statuses := make(chan int, n)
		var wg sync.WaitGroup
		for range n {
			req := newRequest(t, "POST", r.front+"/v1/completions", "").WithContext(ctx)
			req.Body, req.ContentLength = io.NopCloser(&slowReader{text: chat, piece: 1, every: 2 * time.Second}), int64(len(chat))
			wg.Go(func() {
				got, _ := try(http2Client, req) // the answer comes while the body goes, which may be an error
				statuses <- got.status
			})
		}
		t.Cleanup(http2Client.CloseIdleConnections)
		others, streams := 0, int64(0)
		for len(statuses) == 0 && ctx.Err() == nil {
			streams = max(streams, r.Server.Stats().Streams)
			if got := exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+"/v1/chat/completions", chat)); got.status != 200 {
				t.Errorf("another client: status %d", got.status)
			}
			if held, leases := r.held(), r.leases(); held > 0 || leases > 2 {
				t.Fatalf("%d held, %d seats taken, with one other client at a time", held, leases)
			}
			others++
		}
		wg.Wait()
		close(statuses)
		count := map[int]int{}
		for s := range statuses {
			count[s]++
		}
		t.Logf("%d streams at weir at once; %d other requests; answers by status %v", streams, others, count)
		if streams < n/2 || others < 10 || count[http.StatusRequestTimeout] < n*9/10 || count[200] > 0 {
			t.Errorf("%d streams at weir at once; %d other requests; answers by status %v", streams, others, count)
		}
		eventually(t, "weir has none of them", func() bool { return r.Server.Stats().Streams == 0 })
		for _, e := range r.edge.take() {
			if e.Outcome != route.Answered && e.Outcome != route.LeftBody {
				t.Fatalf("outcome %v", e.Outcome)
			}
		}
	})
}
