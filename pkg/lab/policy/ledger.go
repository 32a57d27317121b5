package policy

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/prefix"
)

// picker is a published rule: it names the slot of the replica that takes c.
type picker interface {
	pick(now time.Duration, c *Call) int
}

// ledger is what a router can know of its replicas: what it sent and what has come back, the last scrape, and a
// model of each prefix cache. The rules that look into caches all use the model that weir has (package prefix), with
// the capacity that weir is told, so that they differ in the rule alone.
type ledger struct {
	env     Env
	rng     *rand.Rand
	live    []int     // requests on each replica
	down    []bool    // those that refused the connection at the last look, a second ago at most: a health check
	pending []float64 // uncached prompt tokens of those whose answer has not begun
	scrape  []step.Stats
	index   []*prefix.Index // nil until the rule first looks: most never do
	total   int             // requests on all
	ids     []uint64        // of the replicas, for hashing
}

// charge is what a call put into the ledger.
type charge struct {
	pending float64
	pins    prefix.Pins
}

func newLedger(env Env) *ledger {
	n := len(env.Replicas)
	l := &ledger{
		env: env, rng: rand.New(rand.NewPCG(env.Seed, 0x1ed6e4)),
		live: make([]int, n), down: make([]bool, n), pending: make([]float64, n), scrape: make([]step.Stats, n),
	}
	for i := range n {
		l.ids = append(l.ids, xxhash.Sum64String(strconv.Itoa(i)))
	}
	return l
}

func (l *ledger) n() int { return len(l.live) }

// matched is the blocks of c that the replica in a slot holds.
func (l *ledger) matched(c *Call, slot int) int {
	if l.index == nil {
		for i := range l.n() {
			l.index = append(l.index, prefix.NewIndex(l.env.Profile.KVTokens/chain.BlockTokens))
			l.resize(i)
		}
	}
	return l.index[slot].Match(c.Chain())
}

// resize has the model of a slot's cache be of the size that its scrapes tell, once they do.
func (l *ledger) resize(slot int) {
	if blocks := l.scrape[slot].KVBlocks; blocks > 0 && l.index != nil {
		l.index[slot].Resize(blocks * step.BlockTokens / chain.BlockTokens)
	}
}

// uncached is the tokens of c's prompt that the replica in a slot must compute, at least one.
func (l *ledger) uncached(c *Call, slot int) float64 {
	return float64(max(c.Req.Prompt-l.matched(c, slot)*chain.BlockTokens, 1))
}

// answerBlocks is the blocks that an answer is expected to take: 256 tokens, as weir assumes, and the prompt's rest.
const answerBlocks = 256/chain.BlockTokens + 1

func (l *ledger) send(c *Call) {
	l.live[c.Slot]++
	l.total++
	c.charge.pending = float64(c.Req.Prompt)
	if l.index != nil {
		c.charge.pending = l.uncached(c, c.Slot)
		c.charge.pins = l.index[c.Slot].Pin(c.Chain(), answerBlocks)
	}
	l.pending[c.Slot] += c.charge.pending
}

func (l *ledger) first(c *Call) {
	l.pending[c.Slot] -= c.charge.pending
	c.charge.pending = 0
}

func (l *ledger) end(c *Call) {
	l.live[c.Slot]--
	l.total--
	l.first(c)
	if l.index != nil {
		l.index[c.Slot].Unpin(c.Chain(), c.charge.pins, prefix.All)
	}
}

// least returns the slot of the lowest value among those that are up, one of equal ones by chance.
func (l *ledger) least(value func(slot int) float64) (slot int) {
	low, equal := 0.0, 0
	for i := range l.n() {
		switch v := value(i); {
		case l.down[i]:
		case equal == 0 || v < low:
			slot, low, equal = i, v, 1
		case v == low:
			if equal++; l.rng.IntN(equal) == 0 {
				slot = i
			}
		}
	}
	return slot
}

// immediate is a Router that sends each call where its rule says, at once.
type immediate struct {
	*ledger
	rule picker
}

func (r *immediate) Arrive(now time.Duration, c *Call) bool {
	c.State, c.Slot = Sent, r.rule.pick(now, c)
	if r.down[c.Slot] {
		c.Slot = r.another(c.Slot)
	}
	r.send(c)
	return false
}

func (r *immediate) Release(_ time.Duration, done []*Call) []*Call { return done }

func (r *immediate) Next() (time.Duration, bool) { return 0, false }

func (r *immediate) First(_ time.Duration, c *Call) { r.first(c) }

func (r *immediate) End(_ time.Duration, c *Call) bool {
	r.end(c)
	return false
}

// another is one that is up, by chance, where a rule named one that is not.
func (r *immediate) another(slot int) int {
	return r.least(func(i int) float64 {
		if i == slot {
			return 1
		}
		return 0
	})
}

// Retry tries another replica: without a pick Envoy's own rule does.
func (r *immediate) Retry(_ time.Duration, c *Call) bool {
	r.end(c)
	c.Slot = r.another(c.Slot)
	r.send(c)
	return true
}

func (r *immediate) Refuse(_ time.Duration, slot int) { r.down[slot] = true }

func (r *immediate) Observe(_ time.Duration, slot int, s step.Stats) bool {
	r.scrape[slot], r.down[slot] = s, false
	r.resize(slot)
	return false
}
