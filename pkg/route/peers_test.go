package route

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// A router long after its start prefers a home by as much as others send of what it cannot see, and no more than one that
// has just started.
func TestHomeDiscountFollowsOthers(t *testing.T) {
	r := newRouter(4, Default())
	r.start.Store(epoch.Add(-time.Hour).UnixNano())
	discount := func() float64 {
		d := r.Route(epoch, ask(1, 3000))
		defer r.Done(epoch, d, Unanswered)
		return d.query.Discount
	}
	if got := discount(); got != 0 {
		t.Errorf("alone %v", got)
	}
	busy := r.Route(epoch, ask(2, 3000))
	page := func(times int, running float64) {
		for range times {
			r.Observe(epoch, busy.Choice.First.Endpoint, pool.Sample{At: epoch, Running: running, HasRunning: true, HasWaiting: true})
		}
	}
	page(1, 2)
	if got := discount(); got < 0.4 || got > 0.6 {
		t.Errorf("beside one that sends as much %v, want half", got)
	}
	page(1000, 50)
	if got := discount(); got != 0.8 {
		t.Errorf("beside many %v, want 0.8", got)
	}
	page(1000, 1)
	if got := discount(); got > 0.01 {
		t.Errorf("long after they left %v", got)
	}
}
