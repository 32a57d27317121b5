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
	"errors"
	"fmt"
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

// Config is what the spine is told, beside the pool.
type Config struct {
	// Classes are the priority classes, the most urgent first. The first is the default.
	Classes []classify.Class `yaml:"classes" json:"classes"`
	// MaxHold bounds the wait of every class, up to an hour. Envoy's max_message_timeout and
	// stream_idle_timeout must be longer.
	MaxHold time.Duration `yaml:"max_hold" json:"max_hold"`
	// MaxHeld bounds the requests of each class held per pool, so that a crowd of bulk refuses nobody else; one
	// more is refused at once.
	MaxHeld int `yaml:"max_held" json:"max_held"`
}

// Default is two classes, held for at most five minutes, the deadline of bulk, and 10,000 of each at once.
func Default() Config {
	return Config{Classes: classify.Default(), MaxHold: 5 * time.Minute, MaxHeld: 10_000}
}

// Validate returns every fault of c, joined; each begins with its key and a colon.
func (c Config) Validate() error {
	errs := []error{classify.Validate(c.Classes)}
	if c.MaxHold <= 0 || c.MaxHold > time.Hour {
		errs = append(errs, fmt.Errorf("max_hold: %v is not between 0 and 1h", c.MaxHold))
	}
	if c.MaxHeld < 1 || c.MaxHeld > 1_000_000 {
		errs = append(errs, fmt.Errorf("max_held: %d is not between 1 and 1000000", c.MaxHeld))
	}
	return errors.Join(errs...)
}

// Request is what the edge knows of a request when its body is complete.
type Request struct {
	Path     string // of the HTTP request, with its query string
	Encoding string // content-encoding
	Class    classify.Input
	Body     []byte // read during Route only
}

// homeStart is how long after its start a router prefers a prefix's home, as its index is empty while the
// replicas' caches may be warm (DESIGN.md 4).
const homeStart = time.Minute

// Router routes the requests of one pool. Safe for concurrent use.
type Router struct {
	cfg     Config
	pool    *pool.Pool
	start   atomic.Int64 // nanoseconds of the first request's now; 0 before it
	queries atomic.Uint64
	parsers sync.Pool

	mu   sync.Mutex // guards the gate, every replica's load, and every Decision that is held
	gate *gate.Gate
}

// New returns a router over p, which it owns from now on.
func New(cfg Config, p *pool.Pool) *Router {
	r := &Router{cfg: cfg, pool: p}
	r.parsers.New = func() any { return new(prompt.Parser) }
	bulk := make([]bool, len(cfg.Classes))
	for i, c := range cfg.Classes {
		bulk[i] = c.Bulk
	}
	r.gate = gate.New(bulk, cfg.MaxHeld, len(p.Replicas), r.best, r.charge)
	return r
}

// MaxHold bounds every wait.
func (r *Router) MaxHold() time.Duration { return r.cfg.MaxHold }

// Route takes a request from its body to a Decision: Picked, Refused, or held, which a Ready that is not nil
// says. The caller waits for a held one, and calls Done for each when it ends.
func (r *Router) Route(now time.Time, q *Request) *Decision {
	d := &Decision{Pool: r.pool.Name, Arrived: now}
	r.parse(d, q)
	d.classify(now, r, q)
	if len(r.pool.Replicas) == 0 {
		d.Outcome, d.State = NoReplica, Refused
		return d
	}
	r.locate(now, d)
	if r.offer(now, d) == gate.Admitted {
		d.pin(d.lease.Replica, d.lease.Load)
	}
	return d
}

// offer is GATE: the critical section of a request that comes.
func (r *Router) offer(now time.Time, d *Decision) gate.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.gate.Offer(now, &d.ticket)
	switch s {
	case gate.Held:
		d.State, d.ready = Held, make(chan struct{})
	case gate.Refused:
		r.best(now, &d.ticket) // a full gate did not ask: Retry is the backlog of the replica it wants
		d.refuse(now, Full)
	}
	d.Queued = r.gate.Len()
	return s
}

// parse is PARSE: body to Prompt.
func (r *Router) parse(d *Decision, q *Request) {
	p := r.parsers.Get().(*prompt.Parser)
	d.Prompt.Chain = make(chain.Chain, 0, len(q.Body)/chain.BlockBytes) // at once, not by doubling
	p.Parse(&d.Prompt, q.Path, q.Encoding, q.Body)
	r.parsers.Put(p)
}

// classify is CLASSIFY: class and deadline. A request's own prefill time, were nothing cached, extends its
// deadline; MaxHold ends every wait.
func (d *Decision) classify(now time.Time, r *Router, q *Request) {
	c := classify.Classify(r.cfg.Classes, q.Class)
	own := min(classify.Slack*float64(d.Prompt.Tokens)*r.pool.Config.Rates().Token, r.cfg.MaxHold.Seconds())
	wait := min(c.Deadline+time.Duration(own*float64(time.Second)), r.cfg.MaxHold)
	d.Class = r.cfg.Classes[c.Class].Name
	d.ticket = gate.Ticket{Class: c.Class, Deadline: now.Add(wait), Owner: d}
}

// locate finds what the replicas hold of the prompt, and its home.
func (r *Router) locate(now time.Time, d *Decision) {
	out := r.pool.Config.OutputTokens
	if d.Prompt.MaxTokens > 0 {
		out = min(out, d.Prompt.MaxTokens)
	}
	d.query = pick.Query{Chain: d.Prompt.Chain, Prompt: float64(d.Prompt.Tokens), Output: float64(out), Home: -1}
	key, ok := r.pool.Popular.Key(d.Prompt.Chain, len(r.pool.Replicas))
	if ok {
		d.query.Home = r.pool.Home(key)
	} else {
		key = r.queries.Add(1) // no prefix: ties go round
	}
	d.query.Key = key
	d.query.Discount = r.young(now)
	d.query.Lookup(r.pool)
}

// young reports whether the router started less than homeStart ago.
func (r *Router) young(now time.Time) bool {
	at := now.UnixNano()
	if !r.start.CompareAndSwap(0, at) {
		at = r.start.Load()
	}
	return now.UnixNano()-at < int64(homeStart)
}

// best is PICK, inside the critical section.
func (r *Router) best(now time.Time, t *gate.Ticket) (*pool.Replica, pool.View) {
	d := t.Owner.(*Decision)
	if t.State() == gate.Held {
		d.query.Refresh(r.pool)
	}
	d.Choice = pick.Best(now, r.pool, &d.query)
	return d.Choice.First, d.Choice.View
}

// charge puts the ticket's load on the replica that best chose, inside the critical section.
func (r *Router) charge(now time.Time, t *gate.Ticket) {
	d := t.Owner.(*Decision)
	d.State, d.Wait = Picked, now.Sub(d.Arrived)
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
		d.refuse(now, Late)
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

// Done ends a request: it takes it out of the gate or its load off the replica. The first call counts, later
// ones do nothing. end tells how; a Decision that was refused keeps its own Outcome. It reports whether others
// are held, so that Release is due.
func (r *Router) Done(now time.Time, d *Decision, end Outcome) (held bool) {
	held = r.finish(now, d, end)
	d.unpin(true)
	return held
}

func (r *Router) finish(now time.Time, d *Decision, end Outcome) (held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.ended {
		return false
	}
	d.ended = true
	switch {
	case r.gate.Leave(&d.ticket):
		d.Outcome, d.Wait = LeftHeld, now.Sub(d.Arrived)
		if end == Failed {
			d.Outcome = Failed
		}
	case d.State == Picked:
		d.Outcome = end
		d.lease.Release(now, end == Answered)
	}
	return r.gate.Len() > 0
}

// Serve tells the router which replica answered, and sets the Decision's Served. The lease moves there when it
// was not the one picked, as when Envoy's retry took the second.
func (r *Router) Serve(now time.Time, d *Decision, endpoint string) {
	d.Served = d.served(endpoint)
	at := r.pool.Replica(endpoint)
	if d.Served == First || d.Served == Unknown || at == nil {
		return
	}
	load := d.query.LoadOn(at.Slot)
	if r.move(now, d, at, load) {
		d.unpin(false)
		d.pin(at, load)
	}
}

// move reports whether the lease had to move: not when the request has ended, nor when it is there already.
func (r *Router) move(now time.Time, d *Decision, at *pool.Replica, load pool.Load) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.ended || d.lease.Replica == at {
		return false
	}
	d.lease.Release(now, false)
	r.pool.Charge(now, &d.lease, at, load)
	return true
}

// Observe takes a scrape of the replica at endpoint.
func (r *Router) Observe(now time.Time, endpoint string, s pool.Sample) {
	if at := r.pool.Replica(endpoint); at != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		at.Observe(now, s)
	}
}
