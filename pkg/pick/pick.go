// Package pick chooses the replica for a request: the one of least cost, in seconds (DESIGN.md, section 4).
//
//	cost(r) = V*P + Q + u*P*m + wOut*out*D + wKV*D*k/(1-k)
//
// V*P is the wait behind the backlog, Q that behind those who wait at the gate for r and for a seat and KV there
// (pool.View.Behind), and u*P the request's own prefill: with m = 1 their sum is its time to first token. m prices a
// cache miss by the delay it imposes on those behind (knee.Miss): idle, TTFT decides; as backlog grows affinity
// hardens by itself. The two small terms spread long answers and keep off full caches.
package pick

import (
	"math"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/knee"
	"github.com/weirproxy/weir/pkg/pool"
)

const (
	// wOut and wKV are flat within 5x, by simulation on the workloads they were tuned on (DESIGN.md 4).
	wOut = 0.01
	wKV  = 0.1
	// homeDiscount is what of its uncached tokens a request is charged at its prefix's home, where the
	// blocks are probably cached though this router has not seen it. 0.5 to 0 are alike (DESIGN.md 4).
	homeDiscount = 0.2
	// downCost, in seconds, is more than any wait: replicas that fail come after all others, in their own order.
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
	Output   float64 // tokens expected
	Key      uint64  // names the home; any well-spread number for a chain without blocks
	Home     int     // slot of the home; -1: none
	Bulk     bool    // nobody waits for it
	Discount bool    // charge the home only homeDiscount of the uncached tokens
	Rule     Rule

	matches []Match
}

// Lookup matches the chain against each replica's index. It runs outside the critical section.
func (q *Query) Lookup(p *pool.Pool) {
	n := len(p.Replicas)
	if cap(q.matches) < n {
		q.matches = make([]Match, n)
	}
	q.matches = q.matches[:n]
	for i, r := range p.Replicas {
		v := r.Index.Version() // before the match: a change between the two is looked up again
		q.matches[i] = Match{int32(r.Index.Match(q.Chain)), v}
	}
}

// Refresh looks up again where an index changed since. It waits for nobody: an index that is being written
// keeps its old answer until the next time.
func (q *Query) Refresh(p *pool.Pool) {
	for i, r := range p.Replicas {
		v := r.Index.Version()
		if v == q.matches[i].Version {
			continue
		}
		if n, ok := r.Index.TryMatch(q.Chain); ok {
			q.matches[i] = Match{int32(n), v}
		}
	}
}

// Choice is the replica of least cost for a request, the next best as Envoy's retry, and what spoke for it.
type Choice struct {
	First, Second *pool.Replica // Second is nil in a pool of one
	Cost          float64       // seconds
	Load          pool.Load     // on First
	Matched       int           // blocks that First holds
	View          pool.View     // of First before the charge
}

// Best returns the Choice for q at now. The pool has at least one replica. Ties go to the higher
// Pool.Score for q.Key, the home first of all.
func Best(now time.Time, p *pool.Pool, q *Query) Choice {
	views, mean := p.Views(now)
	m := knee.Miss(mean, p.Work())
	first, second := -1, -1
	var least, next float64
	formula := !q.Rule.requests && !q.Rule.alone
	for i := range views {
		var c float64
		if formula {
			c = cost(&views[i], q.priced(i), q.Output, m)
		} else {
			c = q.Rule.cost(p.Replicas[i], q.priced(i), p)
		}
		if views[i].Down {
			c += downCost
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
		Load: q.LoadOn(first),
	}
	if second >= 0 {
		choice.Second = p.Replicas[second]
	}
	return choice
}

// cost is the formula above for one replica, u uncached tokens and out expected ones. NaN compares as neither less
// nor more, so it would win wherever it came first: it is the dearest instead.
func cost(v *pool.View, u, out, m float64) float64 {
	c := v.Wait + v.Behind + u*v.Prefill*m + wOut*out*v.Decode + wKV*v.Decode*knee.KVPrice(v.KV)
	if math.IsNaN(c) {
		return math.Inf(1)
	}
	return c
}

// cost is what takes the formula's place where the rule balances on something else. A token costs the same on all
// replicas, as the length of a step is load too.
func (r Rule) cost(at *pool.Replica, u float64, p *pool.Pool) float64 {
	own := u * p.Config.PerPromptToken.Seconds()
	if r.requests {
		own += float64(at.Leases()) * p.Work()
	}
	return own
}

// LoadOn is what the request puts on the replica in slot i. At least one token is computed: a model server
// never skips the last one, whose logits it needs.
func (q *Query) LoadOn(i int) pool.Load {
	cached := float64(int(q.matches[i].Blocks) * chain.BlockTokens)
	return pool.Load{Prompt: q.Prompt, Uncached: max(q.Prompt-cached, 1), Output: q.Output, Bulk: q.Bulk}
}

// priced is the uncached tokens on the replica in slot i as they enter the cost.
func (q *Query) priced(i int) float64 {
	u := q.Prompt
	if !q.Rule.blind {
		u = q.LoadOn(i).Uncached
	}
	if (q.Discount || q.Rule.sticky) && i == q.Home {
		u *= homeDiscount
	}
	return u
}

// ahead breaks a tie between slots i and j.
func (q *Query) ahead(p *pool.Pool, i, j int) bool {
	return p.Score(q.Key, i) > p.Score(q.Key, j)
}
