package gate

import (
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// Why is what a held ticket waits for: a closed set.
type Why uint8

// What a ticket waits for, of the replica that is its best.
const (
	Nothing      Why = iota // it may go
	Behind                  // others that go first; it was not looked at yet
	Seat                    // a free seat
	KV                      // KV cache
	Backlog                 // its backlog to fall below the knee
	BulkBacklog             // bulk: below a quarter of that
	BulkKV                  // bulk: KV in use and its own need of 0.7 at most
	BulkReplicas            // bulk: fewer other replicas that prefill bulk
	whyEnd
)

var whyNames = [whyEnd]string{"", "behind", "seat", "kv", "backlog", "bulk_backlog", "bulk_kv", "bulk_replicas"}

// String returns the label; empty for Nothing.
func (w Why) String() string { return whyNames[w] }

// Stats is one class at the gate as /debug/gate shows it.
type Stats struct {
	Class      string  `json:"class"`
	Draining   bool    `json:"draining,omitempty"` // no class of the policy any more: it takes nobody
	Held       int     `json:"held"`
	HeldBytes  int64   `json:"held_bytes"`        // of bodies
	HeldTokens float64 `json:"held_tokens"`       // prompts and expected answers
	Flows      int     `json:"flows"`             // with somebody held
	OwedTokens float64 `json:"owed_tokens"`       // negative: it had more than its share
	Rate       float64 `json:"tokens_per_second"` // at which it drains (drain); 0: too few were admitted to tell
}

// Stats describes each class at now, the most urgent first, and gives look the first most tickets of each in their order,
// with the replica that each wants and what it waits for there.
func (g *Gate) Stats(now time.Time, most int, look func(class int, t *Ticket, r *pool.Replica, why Why)) []Stats {
	all := make([]Stats, len(g.classes))
	if most > 0 {
		g.pool.Unqueue()
	}
	for i, c := range g.classes {
		c.elapse(now, nil)
		all[i] = Stats{
			Class: c.Name, Draining: !slices.Contains(g.live, c), Held: c.len(), HeldBytes: c.bytes, HeldTokens: float64(c.tokens),
			Flows: c.order.Len(), OwedTokens: c.owed, Rate: c.drain.rate(),
		}
		if most > 0 {
			g.heads(now, c, most, func(t *Ticket, r *pool.Replica, why Why) { look(i, t, r, why) })
		}
	}
	g.pool.Unqueue() // a look leaves nothing
	return all
}

// heads gives look the first tickets of a class, as a pass looks at them.
func (g *Gate) heads(now time.Time, c *class, most int, look func(*Ticket, *pool.Replica, Why)) {
	c.each(func(t *Ticket) bool {
		r, v := g.best(now, t)
		look(t, r, g.admits(now, t, r, v, c.owed > 0))
		g.pool.Queue(r, t.Work)
		most--
		return most > 0
	})
}
