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
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

const (
	// bulkWait is the share of tau below which bulk may add to a replica's backlog, and bulkKV the share of KV
	// that it may fill (DESIGN.md 4).
	bulkWait = 0.25
	bulkKV   = 0.7
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
	Left                  // taken back while held
)

// Class is what the gate is told of a priority class.
type Class struct {
	Bulk  bool
	Most  int     // tickets held at once
	Bytes int64   // bytes of their bodies
	Share float64 // of all tokens admitted while it is held, 0 to 1
}

// Ticket is a request at the gate. The caller sets the exported fields before Offer.
type Ticket struct {
	Class    int       // index into the classes of New
	Flow     string    // whose it is, among those who share the class
	Deadline time.Time // it expires then
	Tokens   float64   // what it costs its flow and its class: prompt and expected answer
	Bytes    int64     // of its body
	Owner    any       // what the caller knows it by

	// Need is the share of KV that it would take on its best replica, and Work the prompt tokens to be computed
	// there. best sets both.
	Need, Work float64

	state State
	seq   uint64 // order of arrival
	flow  *flow  // while held
}

// State returns where the ticket stands.
func (t *Ticket) State() State { return t.state }

// Gate holds the tickets of one pool. Not safe for concurrent use.
type Gate struct {
	classes []Class
	knee    bool      // whether it is kept
	queues  []*queue  // by class
	owed    []float64 // by class, tokens
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
	g := &Gate{
		classes: classes, knee: knee, owed: make([]float64, len(classes)), pool: p, best: best, charge: charge,
	}
	for range classes {
		g.queues = append(g.queues, newQueue(maxFlows))
	}
	return g
}

// Offer brings a ticket to the gate and returns its state: Admitted at once if nobody goes before it and its
// replica takes it, Refused if its class is full, else Held. A Held ticket is decided by Release. Next is now if
// the answer to another may have changed: Admitted, it may be what makes a class owed.
func (g *Gate) Offer(now time.Time, t *Ticket) State {
	if g.first(t.Class) {
		g.pool.Unqueue()
		if r, v := g.best(now, t); g.admits(now, t, r, v, false) {
			g.admit(now, t, false)
			return t.state
		}
	}
	q, c := g.queues[t.Class], &g.classes[t.Class]
	if q.len() >= c.Most || q.bytes+t.Bytes > c.Bytes {
		t.state = Refused
		return t.state
	}
	t.state = Held
	t.seq = g.seq
	g.seq++
	q.add(t)
	g.held++
	g.next = now
	return t.state
}

// first reports whether no held ticket goes before a new one of the class: none of its own class or a more
// urgent one, and none that is owed.
func (g *Gate) first(class int) bool {
	for c, q := range g.queues {
		if q.len() > 0 && (c <= class || g.owed[c] > 0) {
			return false
		}
	}
	return true
}

// Next returns when Release must be called even if nothing happens; the zero time: only after an event.
func (g *Gate) Next() time.Time { return g.next }

// Due reports whether that is now.
func (g *Gate) Due(now time.Time) bool { return !g.next.IsZero() && !g.next.After(now) }

// Leave takes a held ticket back. It reports whether the ticket was held.
func (g *Gate) Leave(t *Ticket) bool {
	if t.state != Held {
		return false
	}
	g.queues[t.Class].dropped(t)
	g.leave(t, Left)
	return true
}

// leave counts a ticket out that its queue has let go. A class that holds nobody is owed nothing.
func (g *Gate) leave(t *Ticket, s State) {
	t.state = s
	g.held--
	if g.queues[t.Class].len() == 0 {
		g.owed[t.Class] = min(g.owed[t.Class], 0)
	}
}

// Held returns how many tickets of a class are held, and the bytes of their bodies.
func (g *Gate) Held(class int) (tickets int, bytes int64) {
	return g.queues[class].len(), g.queues[class].bytes
}

// Len returns how many tickets are held.
func (g *Gate) Len() int { return g.held }
