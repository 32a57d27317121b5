package route_test

import (
	"testing"

	"github.com/weirproxy/weir/pkg/route"
)

// TestHeldBytes: what may be held at once, by who waits. The classes are interactive and bulk, with 512 MiB each.
func TestHeldBytes(t *testing.T) {
	const one = 512 << 20
	for _, c := range []struct {
		queue, rule string
		want        int
	}{
		{route.ClassesDeadlines, route.BelowKnee, 2 * one},
		{route.Classes, route.BelowKnee, 2 * one},
		{route.FIFO, route.BelowKnee, one},
		{route.NoQueue, route.BelowKnee, 0},
		{route.ClassesDeadlines, route.NoRule, one},
		{route.Classes, route.NoRule, one},
		{route.FIFO, route.NoRule, 0},
		{route.NoQueue, route.NoRule, 0},
	} {
		cfg := route.Default()
		cfg.Queue, cfg.Rule = c.queue, c.rule
		if got := cfg.HeldBytes(); got != c.want {
			t.Errorf("queue %q, rule %q: %d bytes, want %d", c.queue, c.rule, got, c.want)
		}
	}
}
