// Package route is the spine: a request's whole way on one screen.
//
//	parse > classify > gate > pick > charge        Route
//	the answer ends, or the client leaves          Done
//
// Parsing, hashing and the prefix lookup run without a lock. Admission, the choice among live loads and the
// charge are one critical section per pool, so that a burst cannot pile on one replica and two releases
// cannot overshoot a knee. The prefix blocks of an admitted request enter its replica's index right after it.
//
// A core package: now is an argument, nothing blocks. A held Decision has a channel that is closed when its
// wait is over; the edge parks on it, and the edge's one timer per pool calls Release at Next's time.
package route

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/classify"
	"github.com/weirproxy/weir/pkg/gate"
	"github.com/weirproxy/weir/pkg/pick"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/prompt"
)

// Request is what the edge knows of a request when its body is complete.
type Request struct {
	Path    string // of the HTTP request, with its query string
	Class   classify.Input
	Flow    string // whose request it is, from a source that the operator trusts; empty: nobody's
	Session string // the value of AffinityHeader; empty: none
	Body    []byte // read during Route only, without any content-encoding
	Size    int64  // as of prompt.Input, and the next two
	Partial bool
	Unread  prompt.Reason

	// Parsed is what the body was read to already, by a simulation that has no text: Path and Body are not
	// looked at then. nil: Body is read.
	Parsed *prompt.Prompt

	Kept int // bytes of the body that the edge keeps while the request is held
}

// homeStart is how long after its start a router prefers a prefix's home, as its index is empty while the
// replicas' caches may be warm (DESIGN.md 4).
const homeStart = time.Minute

// Router routes the requests of one pool. Safe for concurrent use.
type Router struct {
	policy  atomic.Pointer[policy]
	pool    *pool.Pool
	start   atomic.Int64 // nanoseconds of the first request's now; 0 before it
	queries atomic.Uint64
	parsers sync.Pool

	mu   sync.Mutex // guards the gate, every replica's load, and every Decision that is held
	gate *gate.Gate
}

// New returns a router over p, which it owns from now on.
func New(cfg Config, p *pool.Pool) *Router {
	r := &Router{pool: p}
	r.parsers.New = func() any { return new(prompt.Parser) }
	now := r.set(cfg)
	r.gate = gate.New(now.gate(), now.knee(), p, r.best, r.charge)
	return r
}

// AffinityHeader is the header whose value the edge puts into Request.Session; empty: none.
func (r *Router) AffinityHeader() string { return r.policy.Load().Pick.AffinityHeader() }

// Route takes a request from its body to a Decision: Picked, Refused, or held, which a Ready that is not nil
// says. The caller waits for a held one, and calls Done for each when it ends.
func (r *Router) Route(now time.Time, q *Request) *Decision {
	d := &Decision{Pool: r.pool.Name, Arrived: now}
	decided := false
	defer func() { // a panic leaves nothing held or charged
		if !decided {
			r.Done(now, d, Failed)
		}
	}()
	r.parse(d, q)
	d.measure(r.pool)
	for state := gate.Offered; state == gate.Offered; { // again if the policy was swapped meanwhile; the body stays read by the old tools_position
		d.classify(now, r, q)
		if len(r.pool.Replicas) == 0 {
			d.Outcome, d.State = NoReplica, Refused
			break
		}
		r.locate(now, d, q.Session)
		if state = r.offer(now, d); state == gate.Admitted {
			d.pin(d.lease.Replica, d.lease.Load)
		}
	}
	decided = true
	return d
}

// offer is GATE: the critical section of a request that comes. Offered: the policy is another by now.
func (r *Router) offer(now time.Time, d *Decision) gate.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.policy != r.policy.Load() {
		return gate.Offered
	}
	if d.policy.Queue == NoQueue {
		r.pool.Arrived(now, false)
		r.pool.Unqueue()
		r.best(now, &d.ticket)
		r.charge(now, &d.ticket)
		return gate.Admitted
	}
	s := r.gate.Offer(now, &d.ticket)
	switch s {
	case gate.Held:
		d.State, d.ready = Held, make(chan struct{})
	case gate.Refused:
		r.refuse(now, d, Full)
	case gate.Shed:
		r.refuse(now, d, Shed)
	}
	r.pool.Arrived(now, d.ticket.Bulk())
	d.Queued = r.gate.Len()
	d.Due = r.gate.Due(now)
	return s
}

// parse is PARSE: body to Prompt.
func (r *Router) parse(d *Decision, q *Request) {
	if q.Parsed != nil {
		d.Prompt = *q.Parsed
		return
	}
	p := r.parsers.Get().(*prompt.Parser)
	p.Parse(&d.Prompt, prompt.Input{
		Path: q.Path, Body: q.Body, Size: q.Size, Partial: q.Partial, Unread: q.Unread, Tools: r.policy.Load().ToolsPosition,
	})
	r.parsers.Put(p)
}

// classify is CLASSIFY: class and deadline, by the policy in force. A request's own prefill time, were nothing cached,
// extends its deadline unless its client asked for one; MaxHold ends every wait.
func (d *Decision) classify(now time.Time, r *Router, q *Request) {
	d.policy = r.policy.Load()
	cfg := &d.policy.Config
	c := classify.Classify(cfg.Classes, q.Class)
	wait, own := c.Deadline, classify.Slack*float64(d.Prompt.Tokens)*r.pool.Config.Rates().Token
	if !c.Asked {
		wait += time.Duration(min(own, cfg.MaxHold.Seconds()) * float64(time.Second))
	}
	if cfg.Queue != ClassesDeadlines {
		wait = cfg.MaxHold // one for all: by deadline is then by arrival
	}
	d.Class = cfg.Classes[c.Class].Name
	d.ticket = gate.Ticket{
		Class: c.Class, Flow: q.Flow, Deadline: now.Add(min(wait, cfg.MaxHold)), Bytes: int64(q.Kept), Owner: d,
	}
	if cfg.Queue == FIFO {
		d.ticket.Class, d.ticket.Flow = 0, ""
	}
}

// locate finds what the replicas hold of the prompt, and its home.
func (r *Router) locate(now time.Time, d *Decision, session string) {
	out := r.pool.OutputOf(d.kind())
	if d.Prompt.MaxTokens > 0 {
		out = min(out, float64(d.Prompt.MaxTokens))
	}
	if d.Prompt.Silent {
		out = 0
	}
	prompts := float64(max(d.Prompt.Prompts, 1))
	answers := prompts * float64(max(d.Prompt.Answers, 1))
	d.query = pick.Query{
		Chain: d.Prompt.Chain, Prompt: float64(d.Prompt.Tokens), Output: answers * out, Prompts: prompts, Answers: answers, Home: -1,
		Rule: d.policy.rule, Block: d.block, Text: d.text, Plain: d.plain,
	}
	if d.aside() { // its engine computes and caches nothing
		d.Prompt.Chain = nil
		d.query = pick.Query{Prompts: prompts, Answers: answers, Home: -1, Rule: d.policy.rule, Block: d.block, Aside: true}
	}
	d.ticket.Tokens = d.query.Prompt + d.query.Output
	key, ok := r.key(d, session)
	if ok {
		d.query.Home = r.pool.Home(key)
	} else {
		key = r.queries.Add(1) // no home: ties go round
	}
	d.query.Key = key
	d.query.Discount = r.homeDiscount(now, d)
	d.query.Lookup(r.pool)
}

// aside reports whether a replica answers without its engine: what counts tokens, and what has no body.
func (d *Decision) aside() bool {
	p := &d.Prompt
	return p.API == prompt.APICount || p.Reason == prompt.ReasonEmpty || p.Silent && p.Tokens == 0
}

// homeDiscount is what of the tokens that it has not seen a request is not charged at its home, as they may be cached there:
// this router knows only what it sent itself.
func (r *Router) homeDiscount(now time.Time, d *Decision) float64 {
	switch home := d.query.Home; {
	case home < 0:
		return 0
	case r.young(now) && !r.pool.Replicas[home].Cold():
		return pick.HomeDiscount
	}
	return min(1-r.pool.Own(), pick.HomeDiscount)
}

// key is what names the request's home, by the affinity of the policy; ok is false for none.
func (r *Router) key(d *Decision, session string) (key uint64, ok bool) {
	switch d.policy.Pick.Affinity {
	case pick.PromptPrefix:
		return r.pool.Popular.Key(d.Prompt.Chain, len(r.pool.Replicas))
	case pick.CacheKey:
		session = d.Prompt.CacheKey
	case pick.None:
		return 0, false
	}
	return chain.Seed(session), session != ""
}

// young reports whether the router started less than homeStart ago.
func (r *Router) young(now time.Time) bool {
	at := now.UnixNano()
	if !r.start.CompareAndSwap(0, at) {
		at = r.start.Load()
	}
	age := now.UnixNano() - at // negative when the clock was set back
	return age >= 0 && age < int64(homeStart)
}

// best is PICK, inside the critical section.
func (r *Router) best(now time.Time, t *gate.Ticket) (*pool.Replica, pool.View) {
	d := t.Owner.(*Decision)
	if t.State() == gate.Held {
		d.query.Refresh(r.pool)
	}
	d.query.Bulk, d.query.Owed = t.Bulk(), t.Owed()
	d.Choice = pick.Best(now, r.pool, &d.query)
	t.Work = d.Choice.Load.Uncached
	t.Need = d.Choice.First.Share(d.Choice.Load.Uncached + d.Choice.Load.Output)
	return d.Choice.First, d.Choice.View
}

// charge puts the ticket's load on the replica that best chose, inside the critical section.
func (r *Router) charge(now time.Time, t *gate.Ticket) {
	d := t.Owner.(*Decision)
	d.State, d.Wait = Picked, now.Sub(d.Arrived)
	r.pool.Waited(d.Predicted().Seconds(), d.Wait.Seconds())
	r.pool.Charge(now, &d.lease, d.Choice.First, d.Choice.Load)
}

// Release ends the wait of every held request whose replica takes it now, or whose deadline has passed, and
// returns how many. Route, Done and Observe do not do it themselves.
func (r *Router) Release(now time.Time) (n int) {
	for {
		d, at, load := r.releaseOne(now)
		if d == nil {
			return n
		}
		if at != nil { // before the next look, so that requests of one prefix follow each other
			d.pin(at, load)
		}
		close(d.ready)
		n++
	}
}

// releaseOne is one pass of the gate: the request whose wait is over, and where it goes; at is nil if nowhere.
func (r *Router) releaseOne(now time.Time) (d *Decision, at *pool.Replica, load pool.Load) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.gate.Release(now)
	if t == nil {
		return nil, nil, load
	}
	d = t.Owner.(*Decision)
	if t.State() == gate.Expired {
		r.refuse(now, d, Late)
		return d, nil, load
	}
	return d, d.lease.Replica, d.lease.Load
}

// Next returns when Release must be called even if nothing happens; the zero time: not before an event.
func (r *Router) Next() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gate.Next()
}
