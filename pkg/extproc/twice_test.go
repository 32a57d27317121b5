package extproc_test

import (
	"strings"
	"testing"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"

	"github.com/weirproxy/weir/pkg/route"
)

// TestARequestEndsOnce: a request is decided when its headers, its body or its trailers end it, and whatever comes after
// that charges nobody again. Where Envoy would take a reply weir gives one; where none is right the stream ends.
func TestARequestEndsOnce(t *testing.T) {
	body := func(c *call) { c.body(chatBody, true) }
	trailers := func(c *call) { c.send(c.tmpl["request_trailers"]) }
	bare := func(c *call) { c.headers(true) }
	after := func(end func(c *call)) func(c *call) {
		return func(c *call) {
			if c.headers(false); c.mode == buffered {
				c.replies()
			}
			end(c)
		}
	}
	for _, tc := range []struct {
		name      string
		end, more func(c *call)
		fails     bool // in FULL_DUPLEX_STREAMED
	}{
		{"headers with the end, then a body", bare, body, true},
		{"headers with the end, then trailers", bare, trailers, false},
		{"a body with the end, then another", after(body), body, true},
		{"a body with the end, then trailers", after(body), trailers, false},
		{"trailers, then a body", after(trailers), body, true},
		{"trailers twice", after(trailers), trailers, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachMode(t, options{}, func(f *fake, m mode) {
				c := f.call(m)
				tc.end(c)
				c.drain()
				if n := f.leases(); sum(n) != 1 {
					f.t.Errorf("leases %v of one request", n)
				}
				tc.more(c)
				want := route.Answered
				if tc.fails && m == streamed {
					c.failsUnchecked(codes.InvalidArgument)
					want = route.Unanswered
				} else {
					c.drain()
					if n := f.leases(); sum(n) != 1 {
						f.t.Errorf("leases %v after what was too much", n)
					}
					c.Send(c.tmpl["response_headers"])
					c.CloseSend()
					c.drainEnd()
				}
				c.cancel()
				if d := f.one(); d.Outcome != want {
					f.t.Errorf("outcome %v, want %v", d.Outcome, want)
				}
			})
		})
	}
}

// drain receives what weir has to say by now, right or wrong.
func (c *call) drain() {
	c.f.t.Helper()
	for c.check.waits() {
		m, err := c.Recv()
		if err != nil {
			c.f.t.Fatalf("weir ended the stream: %v", err)
		}
		kind := replyKind(m)
		for i, k := range c.check.awaited {
			if k == kind && !unfinished(m) {
				c.check.awaited = append(c.check.awaited[:i], c.check.awaited[i+1:]...)
				break
			}
		}
	}
}

// unfinished reports whether a reply is a piece of an echo that goes on.
func unfinished(m *extprocv3.ProcessingResponse) bool {
	s := m.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
	return s != nil && !s.EndOfStream
}

// drainEnd receives until the stream ends, which must be without an error.
func (c *call) drainEnd() {
	c.f.t.Helper()
	for {
		if _, err := c.Recv(); err != nil {
			if err.Error() != "EOF" {
				c.f.t.Errorf("the stream ends with %v", err)
			}
			return
		}
	}
}

// TestModeIsThatOfTheHeaders: the processing mode comes with the first message. One that comes later, which Envoy never
// sends, changes nothing.
func TestModeIsThatOfTheHeaders(t *testing.T) {
	eachMode(t, options{}, func(f *fake, m mode) {
		for _, other := range filterv3.ProcessingMode_BodySendMode_value {
			c := f.call(m)
			c.headers(false)
			if m == buffered {
				c.replies()
			}
			c.send(&extprocv3.ProcessingRequest{
				Request:        &extprocv3.ProcessingRequest_RequestBody{RequestBody: &extprocv3.HttpBody{Body: []byte(chatBody), EndOfStream: true}},
				ProtocolConfig: &extprocv3.ProtocolConfiguration{RequestBodyMode: filterv3.ProcessingMode_BodySendMode(other)},
			})
			c.replies() // the checker holds them to the first mode
			if c.check.pick == "" || m == streamed && string(c.check.echo) != chatBody {
				f.t.Errorf("a body message of mode %d: pick %q, echo of %d bytes", other, c.check.pick, len(c.check.echo))
			}
			last := c.tmpl["response_headers"]
			last.ProtocolConfig = &extprocv3.ProtocolConfiguration{RequestBodyMode: filterv3.ProcessingMode_BodySendMode(other)}
			c.answer("200", endpoints[0])
			c.close()
			if d := f.one(); d.Outcome != route.Answered {
				f.t.Errorf("outcome %v", d.Outcome)
			}
		}
	})
}

// TestTooLargeNamesNoHost is agentgateway PR#3144 for a body that weir refuses: the client's destination is taken away
// before the body is there, or the request ends with weir's answer and reaches nobody.
func TestTooLargeNamesNoHost(t *testing.T) {
	eachMode(t, options{limit: 1000}, func(f *fake, m mode) {
		c := f.call(m)
		c.headers(false, pickHeader, "169.254.169.254:80")
		if m == buffered {
			if got := c.reply().GetRequestHeaders().GetResponse().GetHeaderMutation().GetRemoveHeaders(); len(got) != 1 || got[0] != pickHeader {
				f.t.Errorf("removed in the first reply: %v", got)
			}
		}
		c.body(strings.Repeat("x", 1001), true)
		last := c.replies()
		if c.check.refusal.GetStatus().GetCode() != 413 || c.check.pick != "" || strings.Contains(last.String(), "169.254") {
			f.t.Errorf("the answer is %v, the pick %q", last, c.check.pick)
		}
		c.close()
		if d := f.one(); d.Outcome != route.TooLarge {
			f.t.Errorf("outcome %v", d.Outcome)
		}
	})
}
