package extproc_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weirproxy/weir/pkg/prompt"
	"github.com/weirproxy/weir/pkg/route"
)

// TestTunnels holds that an upgrade and CONNECT are decided at the headers: the lease lives as long as the tunnel, whose
// bytes pass, and where Envoy waits for the end of the body they are refused at once.
func TestTunnels(t *testing.T) {
	asks := map[string][]string{
		"websocket": {":method", "GET", ":path", "/v1/realtime", "upgrade", "websocket", "connection", "upgrade"},
		"CONNECT":   {":method", "CONNECT"},
		"a post":    {":method", "POST", "upgrade", "websocket", "connection", "keep-alive, Upgrade", "content-length", "3"},
	}
	for _, m := range append(modes, others...) {
		for name, headers := range asks {
			withFake(t, options{}, func(f *fake) {
				c := f.call(m)
				c.headers(false, headers...)
				c.reply()
				if m == buffered || m == partial {
					if r := c.check.refusal; r.GetStatus().GetCode() != 501 {
						t.Errorf("%s, %s: %v", m, name, r)
					}
					c.close()
					if d := f.one(); d.Outcome != route.Tunnel {
						t.Errorf("%s, %s: outcome %v", m, name, d.Outcome)
					}
					return
				}
				c.answerTemplate101()
				c.tunnel("one", "", "two")
				if n := f.leases(); sum(n) != 1 {
					t.Errorf("%s, %s: leases %v of a tunnel", m, name, n)
				}
				c.cancel()
				if d := f.one(); d.Outcome != route.Answered || d.Status != 101 || d.Prompt.Tokens == 0 {
					t.Errorf("%s, %s: %v, status %d, %d tokens", m, name, d.Outcome, d.Status, d.Prompt.Tokens)
				}
			})
		}
	}
}

// answerTemplate101 is the answer that opens a tunnel.
func (c *call) answerTemplate101() {
	c.f.t.Helper()
	setHeader(c.tmpl["response_headers"].GetResponseHeaders().Headers, ":status", "101")
	c.answerTemplate()
}

// tunnel sends pieces of a body that has no end, and wants each back at once where Envoy waits for it.
func (c *call) tunnel(pieces ...string) {
	c.f.t.Helper()
	if c.mode == none {
		return
	}
	for _, p := range pieces {
		c.body(p, false)
		if c.mode == chunks {
			c.replies()
		} else if p != "" {
			c.reply()
		}
		if c.mode == streamed && string(c.check.echo) != string(c.check.sentBody) {
			c.f.t.Errorf("%q of %q comes back", c.check.echo, c.check.sentBody)
		}
	}
}

// TestNoTunnel has requests with half of what asks for one: they are as any other.
func TestNoTunnel(t *testing.T) {
	eachMode(t, options{}, func(f *fake, m mode) {
		for _, headers := range [][]string{{"upgrade", "h2c"}, {"connection", "upgrade"}, {"upgrade", "h2c", "connection", "keep-alive, upgrades"}} {
			c := f.call(m)
			c.request(chatBody, headers...)
			c.replies()
			c.close()
			if d := f.one(); d.Prompt.Reason != prompt.ReasonNone || c.check.pick == "" {
				t.Errorf("%v: reason %v, pick %q", headers, d.Prompt.Reason, c.check.pick)
			}
		}
	})
}

// TestTunnelEnds holds the two ends that a tunnel's body may have all the same, and that nothing comes after.
func TestTunnelEnds(t *testing.T) {
	for _, trailers := range []bool{false, true} {
		withFake(t, options{}, func(f *fake) {
			c := f.call(streamed)
			c.headers(false, "upgrade", "websocket", "connection", "upgrade")
			c.reply()
			c.body("one", false)
			c.reply()
			if trailers {
				c.check.awaited = nil // the pieces are back, and nothing marks their end
				c.send(c.tmpl["request_trailers"])
			} else {
				c.body("", true)
			}
			c.replies()
			c.Send(piece("more", true))
			c.failsUnchecked(codes.InvalidArgument)
			f.take()
		})
	}
}

// TestTunnelWhileWeirStops holds that a tunnel goes on for as long as weir does: its bytes need weir. Then it is cut, and
// does not hang.
func TestTunnelWhileWeirStops(t *testing.T) {
	withFake(t, options{}, func(f *fake) {
		c := f.call(streamed)
		c.headers(false, "upgrade", "websocket", "connection", "upgrade")
		c.reply()
		c.answerTemplate101()
		go f.stop()
		for range 6 {
			time.Sleep(time.Second)
			c.tunnel("one")
		}
		f.stop()
		c.failsUnchecked(codes.Unavailable)
		if d := f.one(); d.Outcome != route.Answered {
			t.Errorf("outcome %v", d.Outcome)
		}
	})
}
