package extproc_test

import (
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/extproc"
	"github.com/weirproxy/weir/pkg/route"
)

// TestConfigure switches where the class comes from: a request whose headers came before keeps its class.
func TestConfigure(t *testing.T) {
	eachMode(t, options{}, func(f *fake, m mode) {
		class := func(during func()) string {
			c := f.call(m)
			c.claim("class", "bulk")
			c.headers(false)
			if m == buffered {
				c.replies()
			} else {
				f.take() // the headers have been read
			}
			during()
			c.body(chatBody, true)
			c.replies()
			c.close()
			return f.one().Class
		}
		cfg := extproc.Default()
		cfg.ClassFrom = "metadata:jwt:claims.class"
		if got := class(func() { f.Server.Configure(cfg) }); got != "interactive" {
			f.t.Errorf("the one under way: %s", got)
		}
		if got := class(func() { f.Server.Configure(extproc.Default()) }); got != "bulk" {
			f.t.Errorf("one after the change: %s", got)
		}
		if got := class(func() {}); got != "interactive" {
			f.t.Errorf("one after the change back: %s", got)
		}
	})
}

// TestConfigureWhileRequestsCome is for the race detector.
func TestConfigureWhileRequestsCome(t *testing.T) {
	withFake(t, options{}, func(f *fake) {
		var all sync.WaitGroup
		all.Go(func() {
			for i := range 100 {
				cfg := extproc.Default()
				if i%2 == 0 {
					cfg.Flow, cfg.ClassFrom = "header:x-tenant", "metadata:jwt:claims.class"
				}
				f.Server.Configure(cfg)
				time.Sleep(time.Millisecond)
			}
		})
		for range 100 {
			c := f.call(buffered)
			c.claim("class", "bulk")
			c.request(chatBody, "x-tenant", "a")
			c.replies()
			c.close()
			time.Sleep(time.Millisecond)
		}
		all.Wait()
		if n := outcomes(f.take()); n[route.Unanswered] != 100 {
			f.t.Errorf("outcomes %v", n)
		}
	})
}
