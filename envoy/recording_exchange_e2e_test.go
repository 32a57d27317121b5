package envoy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// upgradable lets upgrades and CONNECT through.
var upgradable = []string{
	"          stat_prefix: front\n", "          stat_prefix: front\n          upgrade_configs: [{upgrade_type: websocket}, {upgrade_type: CONNECT}]\n",
	"              routes:\n              # Bulk fails closed", "              routes:\n              - {match: {connect_matcher: {}}, route: {cluster: replicas, timeout: 0s}}\n              # Bulk fails closed",
}

// websocket is the head of an upgrade.
const websocket = "GET /v1/realtime HTTP/1.1\r\nhost: weir\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"

// large sends a body that is too large for BUFFERED_PARTIAL's buffer, and reports whether it was answered: Envoy 1.40 at
// times forgets such a one (docs/modes.md).
func large(t *testing.T, r *rig) bool {
	body := strings.Replace(chat, "weir", strings.Repeat("weir ", 60_000), 1)
	_, err := try(&http.Client{Timeout: patience / 3}, newRequest(t, "POST", r.front+"/v1/chat/completions", body))
	return err == nil
}

// tunnel sends the head of a request that asks for a tunnel, and leaves once it is answered, or not answered for a while.
// It returns the status, if there is one.
func tunnel(t *testing.T, r *rig, head string) (status string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.front, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(unanswered)) // never fails on an open connection
	line := make([]byte, len("HTTP/1.1 101"))
	if _, err := io.ReadFull(conn, line); errors.Is(err, os.ErrDeadlineExceeded) {
		return ""
	} else if err != nil {
		t.Fatal(err)
	}
	return string(line[len("HTTP/1.1 "):])
}

// unanswered is how long a tunnel is waited for.
const unanswered = 1500 * time.Millisecond

// exchanges are the HTTP requests that are recorded. Each runs alone.
var exchanges = map[string]func(t *testing.T, r *rig){
	"get": func(t *testing.T, r *rig) { r.get(t, "/v1/models") },
	"post": func(t *testing.T, r *rig) {
		exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+"/v1/chat/completions", chat))
	},
	"chunks": func(t *testing.T, r *rig) {
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", "")
		req.Body, req.ContentLength = io.NopCloser(&slowReader{text: chat, piece: 20, every: 10 * time.Millisecond}), -1
		exchange(t, http.DefaultClient, req)
	},
	"empty": func(t *testing.T, r *rig) {
		exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+"/v1/chat/completions", ""))
	},
	"empty-chunked": func(t *testing.T, r *rig) {
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", "")
		req.Body, req.ContentLength = io.NopCloser(&slowReader{every: 10 * time.Millisecond}), -1
		exchange(t, http.DefaultClient, req)
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
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", "")
		req.Body, req.ContentLength = io.NopCloser(&slowReader{text: chat, piece: 1, every: time.Millisecond}), -1
		exchange(t, http.DefaultClient, req)
	},
	"upgrade": func(t *testing.T, r *rig) { tunnel(t, r, websocket) },
	"connect": func(t *testing.T, r *rig) { tunnel(t, r, "CONNECT weir:80 HTTP/1.1\r\nhost: weir:80\r\n\r\n") },
	"h2-post": func(t *testing.T, r *rig) {
		exchange(t, http2Client, newRequest(t, "POST", r.front+"/v1/chat/completions", chat))
	},
	"h2-trailers": func(t *testing.T, r *rig) {
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", "")
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(chat)), -1
		req.Trailer = http.Header{"X-Checksum": {"abc"}}
		exchange(t, http2Client, req)
	},
	"events": func(t *testing.T, r *rig) {
		exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+"/v1/chat/completions?events=3&every=20ms", chat))
	},
	"abort-answer": func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := http.DefaultClient.Do(newRequest(t, "POST", r.front+"/v1/chat/completions?events=1000&every=20ms", chat).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		cancel()
	},
	"abort-upload": func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", "").WithContext(ctx)
		req.Body, req.ContentLength = io.NopCloser(&slowReader{text: chat, piece: 20, every: 200 * time.Millisecond}), -1
		if _, err := http.DefaultClient.Do(req); err == nil {
			t.Error("an upload of a second ends within 0.3 s")
		}
	},
}

const chat = `{"model": "m", "messages": [{"role": "user", "content": "What is a weir?"}], "seed": 9007199254740993}`

// slowReader gives its text in pieces, each after a pause, and its end after another.
type slowReader struct {
	text  string
	piece int
	every time.Duration
}

func (s *slowReader) Read(b []byte) (int, error) {
	time.Sleep(s.every)
	if s.text == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), s.piece)], s.text)
	s.text = s.text[n:]
	return n, nil
}
