package extproc_test

import (
	"bytes"
	"log/slog"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weirproxy/weir/pkg/route"
)

// TestOnlyTheStateReachedTells is envoy#38195 and envoy#22727: Envoy ends an exchange that went well with a reset as with
// an end, so weir goes by how far it came. One release each, and no line of a warning or an error.
func TestOnlyTheStateReachedTells(t *testing.T) {
	answer := func(last bool) func(c *call) {
		return func(c *call) {
			c.request(chatBody)
			c.replies()
			c.answer("200", pickOf(c))
			c.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{
				ResponseBody: &extprocv3.HttpBody{Body: []byte("data: x\n\n"), EndOfStream: last},
			}})
			c.replies()
		}
	}
	for name, tc := range map[string]struct {
		until func(c *call) // nil: in the gate
		want  route.Outcome
	}{
		"a whole exchange":            {answer(true), route.Answered},
		"between headers and the end": {answer(false), route.Answered},
		"picked, no answer yet":       {func(c *call) { c.request(chatBody); c.replies() }, route.Unanswered},
		"before the header reply":     {func(c *call) { c.headers(false) }, route.LeftBody},
		"in the gate":                 {nil, route.LeftHeld},
	} {
		for ends, end := range map[string]func(c *call){"EOF": (*call).hangUp, "reset": func(c *call) { c.cancel() }} {
			if tc.until == nil && ends == "EOF" {
				continue // of one that is held weir reads no message: the reset tells, and Envoy sends both
			}
			t.Run(name+", "+ends, func(t *testing.T) {
				var log bytes.Buffer
				o := options{seats: 1, log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
				eachMode(t, o, func(f *fake, m mode) {
					var busy []*call
					c := f.call(m)
					if tc.until != nil {
						tc.until(c)
					} else {
						c.cancel()
						busy, c = f.fill(m)
					}
					f.take()
					end(c)
					if d := f.one(); d.Outcome != tc.want {
						f.t.Errorf("outcome %v, want %v", d.Outcome, tc.want)
					}
					if n := f.leases(); sum(n) != len(busy) {
						f.t.Errorf("leases %v", n)
					}
					for _, b := range busy {
						b.close()
					}
					f.take()
				})
				if log.Len() > 0 {
					t.Errorf("weir says\n%s", &log)
				}
			})
		}
	}
}

// hangUp ends the stream with replies on their way that nobody reads.
func (c *call) hangUp() {
	if err := c.CloseSend(); err != nil {
		c.f.t.Error(err)
	}
	c.drainEnd()
}
