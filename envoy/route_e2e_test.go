package envoy_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/route"
)

// pickedIsServed wants weir's pick, what Envoy says was served and what the replicas saw to be the same for 99.9 % of
// 2,000 requests, all without an error.
func pickedIsServed(t *testing.T, r *rig) {
	const n, workers = 2000, 16
	jobs := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range jobs {
				body := fmt.Sprintf(`{"model": "m", "prompt": "request %d %s"}`, i, strings.Repeat("x", i%500))
				got, err := try(http.DefaultClient, newRequest(t, "POST", r.front+"/v1/completions", body))
				if err != nil || got.status != 200 {
					t.Errorf("request %d: status %d, %v", i, got.status, err)
				}
			}
		})
	}
	for i := range n {
		jobs <- i
	}
	close(jobs)
	wg.Wait()
	eventually(t, "all streams have ended", func() bool { return r.Server.Stats().Streams == 0 })
	picked := map[string]int{}
	first := 0
	all := r.edge.take()
	for _, e := range all {
		picked[e.Choice.First.Endpoint]++
		if e.Served == route.First && e.Outcome == route.Answered && e.Status == 200 {
			first++
		}
	}
	if len(all) != n || first < n*999/1000 {
		t.Errorf("%d of %d requests were served as picked, want 99.9 %% of %d", first, len(all), n)
	}
	wrong := 0
	for _, s := range r.takeSeen() {
		if len(s.picks) != 1 || !strings.HasPrefix(s.picks[0], s.at+",") {
			wrong++
		}
		picked[s.at]--
	}
	for at, left := range picked {
		if left != 0 {
			t.Errorf("%s: %d requests picked and not served, or the other way round", at, left)
		}
	}
	if wrong > n/1000 {
		t.Errorf("%d requests reached another replica than the pick on them", wrong)
	}
}

// bytesArrive is llm-d-router#2518 and more: the upstream gets the client's bytes and, in BUFFERED, its
// Content-Length, over HTTP/1.1 and 2, with a length and in chunks.
func bytesArrive(t *testing.T, r *rig) {
	odd := `{"model":"m","prompt":"x","seed":9007199254740993,"z":1.0,"a":1e400,"u":"\u2028","dup":1,"dup":2}`
	bodies := [][]byte{{}, []byte("x"), []byte(odd)}
	for _, size := range []int{64 << 10, 1 << 20, 10_000_000} {
		b := make([]byte, size)
		rng := rand.NewChaCha8([32]byte{byte(size)})
		rng.Read(b) // never fails
		bodies = append(bodies, b)
	}
	for proto, client := range map[string]*http.Client{"HTTP/1.1": http.DefaultClient, "HTTP/2": http2Client} {
		for _, body := range bodies {
			for _, chunked := range []bool{false, true} {
				req := newRequest(t, "POST", r.front+"/v1/chat/completions", string(body))
				if chunked {
					req = inChunks(t, r.front+"/v1/chat/completions", bytes.NewReader(body))
				}
				name := fmt.Sprintf("%s, %d bytes, chunked %v", proto, len(body), chunked)
				if got := exchange(t, client, req); got.status != 200 {
					t.Errorf("%s: status %d", name, got.status)
					continue
				}
				s := r.oneSeen(t)
				if s.hash != sha256.Sum256(body) {
					t.Errorf("%s: %d other bytes arrive", name, s.size)
				}
				if r.mode == envoy.Buffered && !chunked && s.length != int64(len(body)) {
					t.Errorf("%s: Content-Length %d arrives", name, s.length)
				}
			}
		}
	}
}

// withoutBody is models-as-a-service#1095 with the real Envoy.
func withoutBody(t *testing.T, r *rig) {
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "DELETE", "POST"} {
		req := newRequest(t, method, r.front+"/v1/models", "")
		if got := exchange(t, http.DefaultClient, req); got.status != 200 {
			t.Errorf("%s: status %d", method, got.status)
		}
		if e := r.oneEnded(t); e.Outcome != route.Answered || e.Served != route.First {
			t.Errorf("%s: %v, served %v", method, e.Outcome, e.Served)
		}
	}
}

// clientNamesNoHost is agentgateway PR#3144 and dynamo PR#8783 while weir is up: what the client names is gone.
func clientNamesNoHost(t *testing.T, r *rig) {
	for range 20 {
		for _, body := range []string{chat, ""} {
			req := newRequest(t, "POST", r.front+"/v1/chat/completions", body)
			req.Header[http.CanonicalHeaderKey(pickHeader)] = []string{"169.254.169.254:80", r.addrs[0]}
			req.Header.Set("x-envoy-original-dst-host", "169.254.169.254:80")
			exchange(t, http.DefaultClient, req)
			e, s := r.oneEnded(t), r.oneSeen(t)
			if !slices.Equal(s.picks, []string{e.Endpoints()}) || s.at != e.Choice.First.Endpoint {
				t.Errorf("at %s arrives pick %q, weir's is %s", s.at, s.picks, e.Endpoints())
			}
		}
	}
}

// busyIsAvoided has one replica compute a giant prompt: as long as its answer is under way, nobody else goes there.
func busyIsAvoided(t *testing.T, r *rig) {
	giant := `{"model": "m", "prompt": "` + strings.Repeat("a giant prompt. ", 100_000) + `"}`
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if resp := r.begin(t, ctx, "/v1/completions?"+endless, giant); resp.StatusCode != 200 {
		t.Fatalf("the giant: status %d", resp.StatusCode)
	}
	busy := r.oneSeen(t).at
	for i := range 30 {
		exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+"/v1/completions", fmt.Sprintf(`{"model": "m", "prompt": "small %d"}`, i)))
		if s := r.oneSeen(t); s.at == busy {
			t.Errorf("request %d goes to the replica with 400,000 tokens pending", i)
		}
	}
}

// retryGoesToSecond is envoy#36119: the pick fails with 503, and Envoy's retry takes weir's second, with the body once.
func retryGoesToSecond(t *testing.T, r *rig) {
	for _, size := range []int{1, 600_000} {
		body := fmt.Sprintf(`{"model": "m", "prompt": "%s"}`, strings.Repeat("x", size))
		if got := exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+"/v1/completions?status=503", body)); got.status != 503 {
			t.Errorf("status %d", got.status)
		}
		e := r.oneEnded(t)
		if e.Served != route.Second || e.Status != 503 || e.Outcome != route.Answered {
			t.Errorf("served %v, status %d, outcome %v", e.Served, e.Status, e.Outcome)
		}
		tries := map[string]int{}
		for _, s := range r.takeSeen() {
			if tries[s.at]++; s.hash != sha256.Sum256([]byte(body)) {
				t.Errorf("a body of %d bytes arrives as %d others", len(body), s.size)
			}
		}
		if len(tries) != 2 || tries[e.Choice.First.Endpoint] != 1 || tries[e.Choice.Second.Endpoint] != 1 {
			t.Errorf("tries %v, picked %s and %s", tries, e.Choice.First.Endpoint, e.Choice.Second.Endpoint)
		}
	}
}

// headerValues is envoy#31555: weir reads what Envoy sends.
func headerValues(t *testing.T, r *rig) {
	for encoding, want := range map[string]string{"": "none", "of its own": "encoding"} {
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", chat)
		req.Header.Set("X-Weir-Class", "bulk")
		if encoding != "" {
			req.Header.Set("content-encoding", encoding)
		}
		exchange(t, http.DefaultClient, req)
		if e := r.oneEnded(t); e.Class != "bulk" || e.Prompt.API.String() != "chat" || e.Prompt.Reason.String() != want || e.Status != 200 {
			t.Errorf("class %s, API %v, reason %v, status %d", e.Class, e.Prompt.API, e.Prompt.Reason, e.Status)
		}
		r.oneSeen(t)
	}
}

// tooLarge is ai-gateway#1209: above 32 MiB Envoy answers 413 in BUFFERED and weir in FULL_DUPLEX_STREAMED.
func tooLarge(t *testing.T, r *rig) {
	for size, want := range map[int]int{32 << 20: 200, 32<<20 + 1: 413} {
		req := newRequest(t, "POST", r.front+"/v1/completions", string(make([]byte, size)))
		got, err := try(&http.Client{Timeout: patience}, req)
		if err != nil || got.status != want {
			t.Errorf("%d bytes: status %d, %v; want %d", size, got.status, err, want)
		}
	}
}
