package envoy_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// large sends a body that is too large for BUFFERED_PARTIAL's buffer, and reports whether it was answered: Envoy 1.40 at
// times forgets such a one (docs/modes.md).
func large(t *testing.T, r *rig) bool {
	body := strings.Replace(chat, "weir", strings.Repeat("weir ", 60_000), 1)
	_, err := try(&http.Client{Timeout: patience / 3}, newRequest(t, "POST", r.front+"/v1/chat/completions", body))
	return err == nil
}

// tunnel sends the head of a request that asks for a tunnel, leaves once it is answered, and returns the status.
func tunnel(t *testing.T, r *rig, head string) int {
	t.Helper()
	c := r.dial(t, head)
	defer c.Conn.Close()
	return c.answer(t).StatusCode
}

// exchanges are the HTTP requests that are recorded. Each runs alone.
var exchanges = map[string]func(t *testing.T, r *rig){
	"get": func(t *testing.T, r *rig) { r.get(t, "/v1/models") },
	"post": func(t *testing.T, r *rig) {
		exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+"/v1/chat/completions", chat))
	},
	"chunks": func(t *testing.T, r *rig) {
		exchange(t, http.DefaultClient, inChunks(t, r.front+"/v1/chat/completions", &slowReader{text: chat, piece: 20, every: 10 * time.Millisecond}))
	},
	"empty": func(t *testing.T, r *rig) {
		exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+"/v1/chat/completions", ""))
	},
	"empty-chunked": func(t *testing.T, r *rig) {
		exchange(t, http.DefaultClient, inChunks(t, r.front+"/v1/chat/completions", &slowReader{every: 10 * time.Millisecond}))
	},
	"head": func(t *testing.T, r *rig) {
		exchange(t, http.DefaultClient, newRequest(t, "HEAD", r.front+"/v1/models", ""))
	},
	"expect": func(t *testing.T, r *rig) {
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", chat)
		req.Header.Set("expect", "100-continue")
		exchange(t, &http.Client{Transport: &http.Transport{ExpectContinueTimeout: patience}}, req)
	},
	"bytes": func(t *testing.T, r *rig) {
		exchange(t, http.DefaultClient, inChunks(t, r.front+"/v1/chat/completions", &slowReader{text: chat, piece: 1, every: time.Millisecond}))
	},
	"upgrade": func(t *testing.T, r *rig) { tunnel(t, r, websocket) },
	"connect": func(t *testing.T, r *rig) { tunnel(t, r, connect("weir:80")) },
	"h2-post": func(t *testing.T, r *rig) {
		exchange(t, http2Client, newRequest(t, "POST", r.front+"/v1/chat/completions", chat))
	},
	"h2-trailers": func(t *testing.T, r *rig) {
		req := inChunks(t, r.front+"/v1/chat/completions", strings.NewReader(chat))
		req.Trailer = http.Header{"X-Checksum": {"abc"}}
		exchange(t, http2Client, req)
	},
	"events": func(t *testing.T, r *rig) {
		exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+"/v1/chat/completions?events=3&every=20ms", chat))
	},
	"abort-answer": func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if _, err := r.stream(t, ctx, endless).Body.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	},
	"abort-upload": func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req := inChunks(t, r.front+"/v1/chat/completions", &slowReader{text: strings.Repeat(chat, 40), piece: 20, every: 100 * time.Millisecond})
		done := make(chan error, 1)
		go func() {
			_, err := try(http.DefaultClient, req.WithContext(ctx))
			done <- err
		}()
		eventually(t, "weir has the stream", func() bool { return r.Server.Stats().Streams == 1 })
		time.Sleep(500 * time.Millisecond) // some pieces follow
		cancel()
		if err := <-done; err == nil {
			t.Error("an upload of 20 s has an answer after 0.5 s")
		}
	},
}
