package extproc_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirproxy/weir/pkg/route"
)

// replayed are the recordings and how each request ends.
var replayed = map[string]route.Outcome{
	"get": route.Answered, "post": route.Answered, "chunks": route.Answered, "empty": route.Answered,
	"empty-chunked": route.Answered, "h2-trailers": route.Answered, "events": route.Answered,
	"abort-answer": route.Answered, "abort-upload": route.LeftBody,
}

// TestRecordedStreams plays what each version of Envoy sent in each mode, and holds weir's replies to what Envoy takes.
func TestRecordedStreams(t *testing.T) {
	for _, version := range recorded {
		for _, m := range modes {
			for name, want := range replayed {
				t.Run(version+"/"+string(m)+"-"+name, func(t *testing.T) {
					withFake(t, options{}, func(f *fake) {
						c := f.replay(m, version, name)
						if strings.HasPrefix(name, "abort") {
							c.cancel()
						} else {
							c.close()
						}
						d := f.one()
						if d.Outcome != want {
							t.Errorf("outcome %v, want %v", d.Outcome, want)
						}
						if picked := want == route.Answered; picked != (c.check.pick != "") {
							t.Errorf("pick %q", c.check.pick)
						}
					})
				})
			}
		}
	}
}

// replay plays a recording up to its end, which the caller makes.
func (f *fake) replay(m mode, version, name string) *call {
	f.t.Helper()
	c := f.call(m)
	for _, r := range recording(f.t, version, string(m)+"-"+name) {
		if m == buffered || r.GetResponseHeaders() != nil {
			c.replies()
		}
		c.send(r)
	}
	if name != "abort-upload" || m == buffered {
		c.replies()
	}
	synctest.Wait() // weir has seen all
	return c
}
