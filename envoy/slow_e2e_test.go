package envoy_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/route"
)

// TestLongHold is ai-gateway PR#1428: with a message_timeout of half a second (200 ms there) a request is held for five
// seconds, both where Envoy would let it go on at that timeout and where it would refuse it, which is what bulk's route says.
func TestLongHold(t *testing.T) {
	t.Parallel() // it waits
	eachVersion(t, func(t *testing.T, path string) {
		eachMode(t, path, rigOptions{edits: []string{" message_timeout: 1s  ", " message_timeout: 0.5s  "}}, func(t *testing.T, r *rig) {
			r.serve(t, 1)
			bothHeldFor(t, r, 5*time.Second)
		})
	})
}

// TestSlowSenders has 2,000 clients send a byte every two seconds. They take no place at the gate and no seat; Envoy ends
// each with 408 after request_timeout, here 12 s; and the one seat of each replica serves others all the while.
func TestSlowSenders(t *testing.T) {
	t.Parallel() // it waits
	manyFiles(t, 4096)
	edits := []string{
		"{profile: 8B}", "{profile: 8B, seats: 1}",
		"          request_timeout: 60s                  #", "          request_timeout: 12s                  #",
	}
	eachMode(t, find(t, envoy.Newest), rigOptions{edits: slices.Concat(edits, longTimeouts)}, func(t *testing.T, r *rig) {
		const n = 2000
		r.serve(t, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
		defer cancel()
		statuses := make(chan int, n)
		var wg sync.WaitGroup
		for range n {
			req := inChunks(t, r.front+"/v1/completions", &slowReader{text: chat, piece: 1, every: 2 * time.Second})
			req.ContentLength = int64(len(chat))
			wg.Go(func() {
				got, _ := try(http2Client, req.WithContext(ctx)) // the answer comes while the body goes, which may be an error
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
			eventually(t, "every seat is free", func() bool { return r.held() == 0 && r.leases() == 0 })
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
