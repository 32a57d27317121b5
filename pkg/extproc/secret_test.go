package extproc_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/pkg/route"
)

// logs collects log lines of every level.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// What a prompt and a header of a client hold that must be nowhere else.
const (
	secret = "SECRET-123"
	token  = "TOKEN-456"
)

// TestNothingOfARequestLeaks is gateway-api-inference-extension#1162: neither a prompt nor a credential is in a log line
// of any level, in a reply or in the metadata, whether the request is routed, broken, refused or too large. In
// FULL_DUPLEX_STREAMED the echo alone has the body.
func TestNothingOfARequestLeaks(t *testing.T) {
	bodies := map[string]string{
		"chat":         `{"model":"m-` + secret + `","messages":[{"role":"user","content":"` + secret + `"}],"user":"` + secret + `"}`,
		"broken":       `{"model":"m","messages":[{"role":"user","content":"` + secret,
		"text":         secret,
		"too large":    `{"prompt":"` + strings.Repeat(secret, 501_000) + `"}`,
		"5 MB, broken": `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(secret, 500_000),
		"none":         "",
	}
	var out logs
	eachMode(t, options{log: out.logger(), limit: 5_010_000}, func(f *fake, m mode) {
		for name, body := range bodies {
			for _, path := range []string{"/v1/chat/completions?key=" + token, "/v1/messages?key=" + token, "/" + secret} {
				c := f.call(m)
				c.headers(false, ":path", path, "authorization", "Bearer "+token, "x-api-key", token, "cookie", token,
					"x-weir-class", secret, "x-weir-deadline", token, "content-encoding", "")
				if m == buffered {
					c.holdsNothing(name)
				}
				c.body(body, true)
				c.holdsNothing(name)
				if c.check.refusal == nil {
					c.answer("500", endpoints[0])
				}
				c.close()
			}
		}
		for _, d := range f.take() {
			if text := d.Class + d.Pool; strings.Contains(text, secret) || strings.Contains(text, token) {
				f.t.Errorf("class %q, pool %q: both are labels", d.Class, d.Pool)
			}
		}
	})
	if text := out.text(); strings.Contains(text, secret) || strings.Contains(text, token) {
		t.Errorf("the log:\n%s", text)
	}
}

// holdsNothing receives what Envoy waits for, and wants none of the secrets there but in the echo.
func (c *call) holdsNothing(name string) {
	c.f.t.Helper()
	for c.check.waits() {
		m := c.reply()
		if unechoed := proto.CloneOf(m); m.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse() != nil {
			unechoed.GetRequestBody().Response.BodyMutation = nil
			m = unechoed
		}
		wire, err := proto.Marshal(m)
		if err != nil {
			c.f.t.Fatal(err)
		}
		if bytes.Contains(wire, []byte(secret)) || bytes.Contains(wire, []byte(token)) {
			c.f.t.Errorf("%s: a reply holds it: %v", name, m)
		}
		if r := m.GetImmediateResponse(); len(r.GetBody()) > 300 {
			c.f.t.Errorf("%s: an answer of %d bytes", name, len(r.GetBody()))
		}
	}
}

// TestPanicLeaksNothing: a fault is logged with its stack, and with nothing of the request.
func TestPanicLeaksNothing(t *testing.T) {
	var out logs
	eachMode(t, options{log: out.logger(), intercept: faulty}, func(f *fake, m mode) {
		for _, at := range []string{"2", "3", "4"} {
			c := f.call(m, "test-panic", at)
			h := c.tmpl["request_headers"]
			h.GetRequestHeaders().Headers.Headers = append(h.GetRequestHeaders().Headers.Headers, &corev3.HeaderValue{Key: "authorization", RawValue: []byte("Bearer " + token)})
			c.Send(h)
			c.Send(piece(`{"model":"m","prompt":"`+secret+`"}`, true))
			c.CloseSend()
			c.failsUnchecked(codes.Internal)
		}
		f.take()
	})
	text := out.text()
	if n := strings.Count(text, "panic"); n < 6 || strings.Contains(text, secret) || strings.Contains(text, token) {
		t.Errorf("the log of six faults:\n%s", text)
	}
}

// TestOversizedMessageIsSaidOnce: a body that gRPC refuses, as Envoy buffers more than weir takes, is counted as too
// large each time and named in the log once, with the settings that mend it.
func TestOversizedMessageIsSaidOnce(t *testing.T) {
	var out logs
	withFake(t, options{log: out.logger(), limit: 1000}, func(f *fake) {
		for range 3 {
			c := f.call(buffered)
			c.headers(false)
			c.replies()
			c.send(messageOf(1000 + 1<<20 + 1))
			c.fails(codes.ResourceExhausted)
			if d := f.one(); d.Outcome != route.TooLarge || d.Pool != "replicas" {
				f.t.Errorf("outcome %v in pool %q", d.Outcome, d.Pool)
			}
		}
	})
	for _, part := range []string{"body_limit", "request_body_buffer_limit", "per_connection_buffer_limit_bytes", "level=WARN"} {
		if !strings.Contains(out.text(), part) {
			t.Errorf("the log does not name %s: %s", part, out.text())
		}
	}
	if n := strings.Count(out.text(), "\n"); n != 1 {
		t.Errorf("%d lines of log, want 1:\n%s", n, out.text())
	}
}
