package extproc_test

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/route"
)

// TestBreakerIsNoFailure: a 503 by which Envoy's own breaker refuses a request comes with the replica's address like any
// other, and is no word of it: else a full breaker takes every replica out, one after the other.
func TestBreakerIsNoFailure(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		eachMode(t, options{}, func(f *fake, m mode) {
			for range 8 {
				c := f.call(m)
				c.request(chatBody)
				c.replies()
				if h := c.tmpl["response_headers"].GetResponseHeaders(); crowded {
					setHeader(h.Headers, "x-envoy-overloaded", "true")
				}
				c.answer("503", pickOf(c))
				c.close()
				if d := f.one(); d.Outcome != route.Answered || d.Status != 503 || d.Crowded != crowded {
					f.t.Errorf("outcome %v, status %d, crowded %v", d.Outcome, d.Status, d.Crowded)
				}
			}
			down := 0
			for _, r := range f.router.Stats(time.Now()).Replicas {
				if r.Down {
					down++
				}
			}
			if (down == 0) != crowded {
				f.t.Errorf("crowded %v: %d of 4 replicas are out", crowded, down)
			}
		})
	}
}
