// Package gate admits, holds or refuses requests. It is patient: a ticket waits for the replica of least cost,
// and never goes to a dearer one because that one is free, which would send warm requests cold, make more
// work and collapse the pool (DESIGN.md, section 4).
//
//	any class   is admitted when its best replica is below its knee
//	bulk        also needs a wait there below tau/4, KV in use and its own need there of 0.7 at most (or no KV
//	            in use: a giant fits nowhere better), and fewer than k other replicas with bulk that is not
//	            yet prefilled (pool.BulkReplicas)
//
// Tickets are looked at by class, then by flow, then by deadline (queue). One that cannot be admitted does not
// block the next: its replica is not theirs. What a more urgent one waits for is above its knee, so bulk never
// takes it.
//
// A class with a share is owed that share of all tokens admitted while it is held (settle). While something is
// owed to it, it goes before every other class and by the rule of any class, bulk or not.
//
// No clock, no goroutine, no timer: the caller passes now, asks Next when to come back, and guards the gate
// with the pool's critical section.
package gate

import (
	"math"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

const (
	// bulkWait is the share of tau below which bulk may add to a replica's backlog: less and more are alike.
	bulkWait = 0.25
	// bulkKV is the share of KV that it may fill. What bulk holds makes each step longer, those of interactive requests too,
	// and less than 0.7 has it wait for long (DESIGN.md 4).
	bulkKV = 0.7
	// tick is the least time from one pass to the next that Next asks for, against rounding.
	tick = time.Millisecond
)

// kneeKV is the most KV in use below the knee, which is at all of it.
var kneeKV = math.Nextafter(1, 0)

// State is where a ticket stands.
type State uint8

// A ticket is Held at most once.
const (
	Offered  State = iota // not yet decided
	Held                  // waits at the gate
	Admitted              // charged to its replica
	Expired               // its deadline passed at the gate
	Refused               // its class was full
	Shed                  // it would expire before its turn
	Left                  // taken back while held
)

// Class is what the gate is told of a priority class.
type Class struct {
	Name     string // no other class has it
	Bulk     bool
	Deadline time.Duration // usual wait of a ticket at most
	Most     int           // tickets held at once
	Bytes    int64         // bytes of their bodies
	Share    float64       // of all tokens admitted while it is held, 0 to 1
}

// Ticket is a request at the gate. The caller sets the exported fields before Offer.
type Ticket struct {
	Class    int       // index into the classes of New, or of the last Configure
	Flow     string    // whose it is, among those who share the class
	Deadline time.Time // it expires then, an hour after Offer at most
	Tokens   float64   // what it costs its flow and its class: prompt and expected answer
	Bytes    int64     // of its body
	Owner    any       // what the caller knows it by

	// Predicted is how long it was expected to wait when it came: what goes before it over the rate at which its class
	// drains. 0: it is the next, or too few were admitted to tell.
	Predicted time.Duration

	Why Why // it waits, by the last look at it

	// Need is the share of KV that it would take on its best replica, and Work the prompt tokens to be computed
	// there. best sets both.
	Need, Work float64

	state State
	class *class // from Offer on
	owed  bool   // something is owed to its class in the pass that looks at it
	seq   uint64 // order of arrival
	flow  *flow  // while held
}

// State returns where the ticket stands.
func (t *Ticket) State() State { return t.state }

// Gate holds the tickets of one pool. Not safe for concurrent use.
type Gate struct {
	classes []*class // the most urgent first
	live    []*class // of them those that take tickets, as they were configured
	knee    bool     // whether it is kept
	pool    *pool.Pool
	held    int
	seq     uint64
	next    time.Time

	best   func(now time.Time, t *Ticket) (*pool.Replica, pool.View)
	charge func(now time.Time, t *Ticket)
}

// New returns an empty gate before p. knee false is the rule without the knee: only bulk waits. best finds the
// replica of least cost for a ticket and sets its Need and Work, and charge puts the ticket's load on the replica
// that best named last. Both run inside the caller's critical section.
func New(classes []Class, knee bool, p *pool.Pool,
	best func(time.Time, *Ticket) (*pool.Replica, pool.View), charge func(time.Time, *Ticket)) *Gate {
	g := &Gate{pool: p, best: best, charge: charge}
	g.Configure(time.Time{}, classes, knee)
	return g
}

// Offer brings a ticket to the gate and returns its state: Admitted at once if nobody goes before it and its
// replica takes it, Refused if its class is full, Shed if it would expire before its turn, else Held, and then
// Release decides. Next is now if a pass is due: the ticket is Held, or by being Admitted made a class owed.
func (g *Gate) Offer(now time.Time, t *Ticket) State {
	c := g.live[t.Class]
	t.class, t.owed = c, false
	t.Why = Behind
	if g.first(c) {
		g.pool.Unqueue()
		r, v := g.best(now, t)
		if t.Why = g.admits(now, t, r, v, false); t.Why == Nothing {
			g.admit(now, t, false)
			return t.state
		}
	}
	if c.len() >= c.Most || c.bytes+t.Bytes > c.Bytes {
		t.state, t.Why = Refused, Nothing
		return t.state
	}
	if t.Predicted, _ = c.predict(now, t); t.Predicted > t.Deadline.Sub(now) {
		t.state, t.Why = Shed, Nothing
		return t.state
	}
	t.state = Held
	t.seq = g.seq
	g.seq++
	c.add(now, t)
	g.held++
	g.next = now
	return t.state
}

// first reports whether no held ticket goes before a new one of the class: none of its own class or a more
// urgent one, and none that is owed.
func (g *Gate) first(of *class) bool {
	before := true
	for _, c := range g.classes {
		if c.len() > 0 && (before || c.owed > 0) {
			return false
		}
		before = before && c != of
	}
	return true
}

// Next returns when Release must be called even if nothing happens; the zero time: only after an event.
func (g *Gate) Next() time.Time { return g.next }

// Due reports whether that is now.
func (g *Gate) Due(now time.Time) bool { return !g.next.IsZero() && !g.next.After(now) }

// Leave takes a held ticket back. It reports whether the ticket was held.
func (g *Gate) Leave(now time.Time, t *Ticket) bool {
	if t.state != Held {
		return false
	}
	t.class.dropped(now, t)
	g.leave(t, Left)
	return true
}

// leave counts a ticket out that its queue has let go. A class that holds nobody is owed nothing.
func (g *Gate) leave(t *Ticket, s State) {
	t.state = s
	g.held--
	c := t.class
	if c.len() > 0 {
		return
	}
	c.owed = min(c.owed, 0)
	if !slices.Contains(g.live, c) { // it has drained
		g.classes = slices.DeleteFunc(slices.Clone(g.classes), func(o *class) bool { return o == c })
	}
}

// Held returns how many tickets of a class are held, and the bytes of their bodies.
func (g *Gate) Held(class int) (tickets int, bytes int64) {
	return g.live[class].len(), g.live[class].bytes
}

// Retry returns when a request should come back whose ticket t was refused, shed or expired, or left as weir stops, and that
// may wait for patience: when those who are held of its class have drained, less that, and then one after the other, as
// fast as the class drains. It is at most most, and ok is false while too few were admitted to tell.
func (g *Gate) Retry(now time.Time, t *Ticket, patience, most time.Duration) (after time.Duration, ok bool) {
	return t.class.retry(now, t.Tokens, patience, most)
}

// Bulk reports whether the ticket's class is held back as bulk.
func (t *Ticket) Bulk() bool { return t.class != nil && t.class.Bulk }

// Owed reports whether the pass that looks at the ticket owes its class something, so that it goes by the rule of any class.
func (t *Ticket) Owed() bool { return t.owed }

// Len returns how many tickets are held.
func (g *Gate) Len() int { return g.held }
