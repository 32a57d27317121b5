// Package pick chooses the replica for a request: the one of least cost, in seconds (DESIGN.md, section 4).
//
//	cost(r) = V*P + Q + K + u*P*m + s*(mK-1)
//
// V*P is the wait behind the backlog, Q that behind those who wait at the gate for r (pool.View.Behind), K that for a seat or
// for KV, the longer one: what those before it leave (pool.View.Seat, Room), and for KV also what is to be expected with so
// much in use (knee.Memory). u*P is the request's own prefill: with m = 1 their sum is its time to first token. P in it, and D in
// s and in what is to be expected of KV, are by the pool's rates, alike on all replicas (pool.View.Price, Step); P in V*P is
// the replica's own.
//
// A cache miss also delays those behind. m prices that of the prefill, by the mean of V*P + Q over the mean work of a request
// (knee.Miss); for interactive requests replicas that hold bulk count as zero, and the work is that of interactive ones, as
// nobody but bulk queues behind bulk. mK that of the memory, of which a miss takes more, by the mean wait for KV over the mean KV time of a request.
// A miss takes no more of a seat. s is
// the request's own KV time, for how long it would take all of the replica's KV: (u + out)/KV * out*D. Idle, TTFT decides;
// as backlog grows, or memory gets scarce, affinity hardens by itself. There is no weight in it (DESIGN.md 4 has those that were tried).
package pick

import (
	"cmp"
	"math"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/knee"
	"github.com/weirproxy/weir/pkg/pool"
)

const (
	// HomeDiscount is what of its tokens that no replica is known to hold a request is not charged, at most, at its prefix's
	// home, where they are probably cached though this router has not seen it. 0.5 and 1 are worse beside other routers
	// (DESIGN.md 4).
	HomeDiscount = 0.8
	// downCost, in seconds, is more than any wait: replicas that fail come after all others, in their own order. For bulk,
	// those that are kept free of it stand between, at half of it.
	downCost = 1e6
)

// Match is how many leading blocks of a chain one replica holds, and the index version that said so.
type Match struct {
	Blocks  int32
	Version uint64
}

// Query is what picking needs to know of a request. Scratch memory is kept in it, so that asking again for a
// held request allocates nothing.
type Query struct {
	Chain    chain.Chain
	Prompt   float64 // tokens
	Output   float64 // tokens expected, of all its answers
	Prompts  float64 // as of pool.Load
	Answers  float64
	Block    float64    // tokens of a block of Chain; 0: chain.BlockTokens
	Text     *pool.Text // as of pool.Load
	Plain    float64    // tokens, as of pool.Load
	Aside    bool       // as of pool.Load
	Key      uint64     // names the home; any well-spread number for a chain without blocks
	Home     int        // slot of the home; -1: none
	Bulk     bool       // nobody waits for it
	Owed     bool       // bulk that goes by the rule of any class
	Discount float64    // what of the tokens that no replica is known to hold the home does not charge, 0 to 1
	Rule     Rule

	matches []Match
	known   int32 // blocks that the replica holds that holds most of them
}

// Lookup matches the chain against each replica's index. It runs outside the critical section.
func (q *Query) Lookup(p *pool.Pool) {
	n := len(p.Replicas)
	if cap(q.matches) < n {
		q.matches = make([]Match, n)
	}
	q.matches, q.known = q.matches[:n], 0
	q.Block = cmp.Or(q.Block, chain.BlockTokens)
	held := 0
	for i, r := range p.Replicas {
		v := r.Index.Version() // before the match: a change between the two is looked up again
		held = r.Index.MatchNear(q.Chain, held)
		q.matches[i] = Match{int32(held), v}
		q.known = max(q.known, int32(held))
	}
}

// Refresh looks up again where an index changed since. It waits for nobody: an index that is being written
// keeps its old answer until the next time.
func (q *Query) Refresh(p *pool.Pool) {
	q.known = 0
	for i, r := range p.Replicas {
		m := &q.matches[i]
		if v := r.Index.Version(); v != m.Version {
			if n, ok := r.Index.TryMatch(q.Chain, int(m.Blocks)); ok {
				*m = Match{int32(n), v}
			}
		}
		q.known = max(q.known, m.Blocks)
	}
}

// Choice is the replica of least cost for a request, the next best as Envoy's retry, and what spoke for it.
type Choice struct {
	First, Second *pool.Replica // Second is nil in a pool of one
	Cost          float64       // seconds
	Load          pool.Load     // on First
	Matched       int           // blocks that First holds
	Cached        float64       // tokens of them
	View          pool.View     // of First before the charge
}

// Best returns the Choice for q at now. The pool has at least one replica. Ties go to the higher
// Pool.Score for q.Key, the home first of all.
func Best(now time.Time, p *pool.Pool, q *Query) Choice {
	views, mean := p.Views(now)
	m, mK := q.miss(p, mean), 1.0
	first, second := -1, -1
	var least, next float64
	formula := !q.Rule.requests && !q.Rule.alone
	if formula {
		mK = knee.Miss(q.await(p, views), p.KVTime())
	}
	for i := range views {
		var c float64
		if formula {
			c = q.cost(&views[i], p.Replicas[i], q.priced(i), m, mK)
		} else {
			c = q.Rule.cost(p.Replicas[i], q.priced(i), p)
		}
		if views[i].Down {
			c += downCost
		} else if q.Bulk && !q.Owed && views[i].NoBulk {
			c += downCost / 2
		}
		switch {
		case first < 0 || c < least || c == least && q.ahead(p, i, first):
			second, next = first, least
			first, least = i, c
		case second < 0 || c < next || c == next && q.ahead(p, i, second):
			second, next = i, c
		}
	}
	choice := Choice{
		First: p.Replicas[first], Cost: least, View: views[first], Matched: int(q.matches[first].Blocks),
		Load: q.LoadOn(first), Cached: q.cached(q.matches[first].Blocks),
	}
	if second >= 0 {
		choice.Second = p.Replicas[second]
	}
	return choice
}

// miss is m. Those that other routers sent queue behind a miss, too.
func (q *Query) miss(p *pool.Pool, mean pool.Delay) float64 {
	if q.Bulk {
		return knee.Miss(mean.All/p.Own(), p.Work())
	}
	return knee.Miss(mean.Interactive/p.Own(), p.InteractiveWork())
}

// await adds the expected wait for KV to each view's Room, and returns their mean, in seconds.
func (q *Query) await(p *pool.Pool, views []pool.View) (mean float64) {
	share, need := -1.0, knee.Need{}
	for i := range views {
		v := &views[i]
		if s := p.Replicas[i].Share(q.priced(i) + q.Output); s != share { // alike on most replicas
			share, need = s, knee.NeedOf(s)
		}
		v.Room += v.Memory.Wait(need, q.life(v))
		mean += v.Room
	}
	return mean / float64(len(views))
}

// cost is the formula above for one replica and u uncached tokens. NaN compares as neither less nor more, so it would win
// wherever it came first: it is the dearest instead.
func (q *Query) cost(v *pool.View, r *pool.Replica, u, m, mK float64) float64 {
	c := v.Wait + v.Behind + v.Place() + u*v.Price*m + r.Share(u+q.Output)*q.life(v)*(mK-1)
	if math.IsNaN(c) {
		return math.Inf(1)
	}
	return c
}

// life is how long its answers take there, which run at once.
func (q *Query) life(v *pool.View) float64 { return q.Output / max(q.Answers, 1) * v.Step }

// cost is what takes the formula's place where the rule balances on something else. A token costs the same on all
// replicas, as the length of a step is load too.
func (r Rule) cost(at *pool.Replica, u float64, p *pool.Pool) float64 {
	own := u * p.PromptToken()
	if r.requests {
		own += float64(at.Leases()) * p.Work()
	}
	return own
}

// LoadOn is what the request puts on the replica in slot i. At least one token is computed: a model server
// never skips the last one, whose logits it needs.
func (q *Query) LoadOn(i int) pool.Load {
	return pool.Load{
		Prompt: q.Prompt, Uncached: q.uncached(i), Output: q.Output, Bulk: q.Bulk, Prompts: q.Prompts, Answers: q.Answers, Text: q.Text, Plain: q.Plain, Aside: q.Aside,
	}
}

// uncached is the tokens that the replica in slot i must compute.
func (q *Query) uncached(i int) float64 { return max(q.Prompt-q.cached(q.matches[i].Blocks), 1) }

// cached is the tokens of so many blocks of the chain.
func (q *Query) cached(blocks int32) float64 { return float64(blocks) * q.Block }

// priced is the uncached tokens on the replica in slot i as they enter the cost.
func (q *Query) priced(i int) float64 {
	u := q.Prompt
	if !q.Rule.blind {
		u = q.uncached(i)
	}
	if i == q.Home {
		if q.Rule.sticky {
			return u * (1 - HomeDiscount)
		}
		u -= q.Discount * max(q.Prompt-q.cached(q.known), 0)
	}
	return u
}

// ahead breaks a tie between slots i and j.
func (q *Query) ahead(p *pool.Pool, i, j int) bool {
	return p.Score(q.Key, i) > p.Score(q.Key, j)
}
