package envoy_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/route"
)

// prompt is a chat of about so many bytes, unlike any other of another mark. Most of it is the system message: of a body
// that is cut that is what weir can be sure of.
func prompt(size int, mark string) string {
	text := strings.Repeat(mark+" what is a weir, and what is it for? ", size/(len(mark)+37)+1)
	return fmt.Sprintf(`{"model": "m", "max_tokens": 16, "messages": [{"role": "system", "content": %q}, {"role": "user", "content": "Why?"}]}`, text[:size])
}

// post sends a body as HTTP/1.1, and once more where it has no answer: BUFFERED_PARTIAL at times forgets a large one.
func (r *rig) post(t *testing.T, query, body string) reply {
	t.Helper()
	client := &http.Client{Timeout: patience}
	if r.mode == envoy.Partial {
		client.Timeout = patience / 3
	}
	for tries := 1; ; tries++ {
		got, err := try(client, newRequest(t, "POST", r.front+"/v1/chat/completions"+query, body))
		if err == nil {
			return got
		}
		if r.mode != envoy.Partial || !os.IsTimeout(err) || tries == 10 {
			t.Fatal(err)
		}
		r.settle(t)
	}
}

// picksFollowed sends bodies of all sizes whole and in pieces, and counts those that reach the replica that weir picked.
func picksFollowed(t *testing.T, r *rig) string {
	const n = 20
	followed := 0
	for i := range n {
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", prompt(100*i, "some"))
		if i%2 == 0 {
			req = inChunks(t, r.front+"/v1/chat/completions", &slowReader{text: prompt(100*i, "some"), piece: 200, every: time.Millisecond})
		}
		exchange(t, http.DefaultClient, req)
		s, e := r.oneSeen(t), r.oneEnded(t)
		if e.State == route.Picked && e.Served == route.First && s.at == e.Choice.First.Endpoint {
			followed++
		}
	}
	if followed == n {
		return "always"
	}
	return fmt.Sprintf("%d of %d times", followed, n)
}

// reads tells how much of a prompt weir reads, by the blocks that it makes of it.
func reads(size int) func(t *testing.T, r *rig) string {
	return func(t *testing.T, r *rig) string {
		if got := r.post(t, "", prompt(size, "read")); got.status != 200 {
			return fmt.Sprint(got.status)
		}
		switch read := len(r.oneEnded(t).Prompt.Chain) * chain.BlockBytes; {
		case read > size*98/100:
			return "all"
		case read > 0:
			return "the beginning"
		}
		return "nothing"
	}
}

// charged tells what the tokens of a large prompt count as.
func charged(t *testing.T, r *rig) string {
	if got := r.post(t, "", prompt(largePrompt, "charge")); got.status != 200 {
		return fmt.Sprint(got.status)
	}
	switch n := float64(r.oneEnded(t).Prompt.Tokens) * 4 / largePrompt; {
	case n > 0.95 && n < 1.05:
		return "all"
	case n > 0.1:
		return "what is read"
	}
	return "nothing"
}

// framing tells how the body of a client with a Content-Length reaches the replica.
func framing(proto string) func(t *testing.T, r *rig) string {
	return func(t *testing.T, r *rig) string {
		body := prompt(1000, "frame")
		switch proto {
		case "HTTP/1.1":
			r.post(t, "", body)
		case "HTTP/2":
			exchange(t, http2Client, newRequest(t, "POST", r.front+"/v1/chat/completions", body))
		case "HTTP/1.0":
			r.postOld(t, body)
		}
		s := r.oneSeen(t)
		if s.hash != sha256.Sum256([]byte(body)) {
			t.Errorf("%s: %d other bytes arrive", proto, s.size)
		}
		switch s.length {
		case int64(len(body)):
			return "kept"
		case -1:
			return "chunks"
		}
		return fmt.Sprint(s.length)
	}
}

// postOld sends a body as HTTP/1.0, which Go's client does not speak.
func (r *rig) postOld(t *testing.T, body string) {
	t.Helper()
	c := r.dial(t, fmt.Sprintf("POST /v1/chat/completions HTTP/1.0\nhost: weir\ncontent-length: %d\n\n", len(body)))
	io.WriteString(c.Conn, body)
	resp := c.answer(t)
	if resp.StatusCode != 200 {
		t.Fatalf("HTTP/1.0: %s", resp.Status)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
}

func refusesChunks(t *testing.T, r *rig) string {
	return fmt.Sprint(r.post(t, "?length=must", prompt(1000, "length")).status)
}

// retried has the first try fail, and tells how the body reaches the second.
func retried(size int) func(t *testing.T, r *rig) string {
	return func(t *testing.T, r *rig) string {
		body := prompt(size, "retry")
		if got := r.post(t, "?status=503", body); got.status != 503 {
			return fmt.Sprint(got.status)
		}
		e, all := r.oneEnded(t), r.takeSeen()
		for _, s := range all {
			if s.hash != sha256.Sum256([]byte(body)) {
				return fmt.Sprintf("%d bytes", s.size)
			}
		}
		switch {
		case len(all) == 2 && e.Served == route.Second:
			return "whole, to the second pick"
		case len(all) == 1:
			return "none"
		}
		return fmt.Sprintf("%d tries, served %v", len(all), e.Served)
	}
}

func upgrades(t *testing.T, r *rig) string {
	return fmt.Sprint(tunnel(t, r, websocket))
}

// holds tells whether a request can be held for longer than Envoy waits for weir by itself.
func holds(t *testing.T, r *rig) string {
	seats := r.occupy(t)
	done := r.send(t, t.Context())
	r.awaitHeld(t, 1)
	time.Sleep(holdFor)
	held := r.held()
	seats.end()
	if got := <-done; got.status != 200 || held != 1 {
		return fmt.Sprint(got.status)
	}
	return "lasts"
}

// diesHolding cuts Envoy's connections to weir while it holds a request.
func diesHolding(t *testing.T, r *rig) string {
	r.occupy(t)
	done := r.send(t, t.Context())
	r.awaitHeld(t, 1)
	r.edge.sever()
	got, all := <-done, r.takeSeen()
	if len(all) == 1 && got.status == 200 && all[0].hash == sha256.Sum256([]byte(chat)) {
		return "it goes on, whole"
	}
	if len(all) > 0 {
		return fmt.Sprintf("%d, %d bytes arrive", got.status, all[0].size)
	}
	return fmt.Sprint(got.status)
}
