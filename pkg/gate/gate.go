// Package gate admits, holds or sheds requests. It is patient: a ticket waits for the replica of least cost,
// and never goes to a dearer one because that one is free, which would send warm requests cold, make more
// work and collapse the pool (DESIGN.md, section 4).
//
//	interactive  is admitted when its best replica is below its knee
//	bulk         also needs that no interactive ticket waits for that replica, and a wait below tau/4
//
// Tickets are looked at by class, then by deadline. One that cannot be admitted does not block the next: its
// replica is not theirs. At most LookAhead tickets of a class are looked at in one pass.
//
// No clock, no goroutine, no timer: the caller passes now, asks Next when to come back, and guards the gate
// with the pool's critical section.
package gate

import (
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

const (
	// LookAhead bounds the tickets of one class that a pass looks at. With more than that held, one behind
	// them waits even if its own replica is free.
	LookAhead = 32
	// bulkShare is the share of tau below which bulk may add to a replica's backlog (DESIGN.md 4).
	bulkShare = 0.25
	// tick is the least time from one pass to the next that Next asks for, against rounding.
	tick = time.Millisecond
)

// State is where a ticket stands.
type State uint8

const (
	Offered  State = iota // not yet decided
	Held                  // waits at the gate
	Admitted              // charged to its replica
	Expired               // its deadline passed at the gate
	Refused               // its class was full
	Left                  // taken back while held
)

// Ticket is a request at the gate. The caller sets the exported fields before Offer.
type Ticket struct {
	Class    int       // index into the classes of New
	Deadline time.Time // it expires then
	Owner    any       // what the caller knows it by

	state State
	seq   uint64 // order of arrival
}

// State returns where the ticket stands.
func (t *Ticket) State() State { return t.state }

// Gate holds the tickets of one pool. Not safe for concurrent use.
type Gate struct {
	bulk   []bool      // by class
	queues [][]*Ticket // by class, ordered by deadline, then arrival
	most   int
	held   int
	seq    uint64
	next   time.Time

	best   func(now time.Time, t *Ticket) (*pool.Replica, pool.View)
	charge func(now time.Time, t *Ticket)

	wanted []uint64 // by replica slot: the last pass in which an interactive ticket waited for it
	pass   uint64
}

// New returns an empty gate that holds at most `most` tickets of each class, of which bulk tells which are
// bulk. best finds the replica of least cost for a ticket, and charge puts the ticket's load on the replica
// that best named last. Both run inside the caller's critical section.
func New(bulk []bool, most, replicas int,
	best func(time.Time, *Ticket) (*pool.Replica, pool.View), charge func(time.Time, *Ticket)) *Gate {
	return &Gate{
		bulk: bulk, queues: make([][]*Ticket, len(bulk)), most: most, wanted: make([]uint64, replicas),
		best: best, charge: charge,
	}
}

// Offer brings a ticket to the gate and returns its state: Admitted at once if nobody of its class or a more
// urgent one is held and its replica takes it, Refused if its class is full, else Held. A Held ticket is decided
// by Release.
func (g *Gate) Offer(now time.Time, t *Ticket) State {
	if g.first(t.Class) {
		g.pass++ // nobody is wanted: what the last pass saw is gone
		if r, v := g.best(now, t); g.admits(t, r, v) {
			g.admit(now, t)
			return t.state
		}
	}
	if len(g.queues[t.Class]) >= g.most {
		t.state = Refused
		return t.state
	}
	t.state = Held
	t.seq = g.seq
	g.seq++
	q := g.queues[t.Class]
	i, _ := slices.BinarySearchFunc(q, t, compare)
	g.queues[t.Class] = slices.Insert(q, i, t)
	g.held++
	g.next = now
	return t.state
}

// first reports whether nobody of the class or a more urgent one is held.
func (g *Gate) first(class int) bool {
	for _, q := range g.queues[:class+1] {
		if len(q) > 0 {
			return false
		}
	}
	return true
}

// Release makes one pass and returns the first ticket whose wait is over, Admitted and charged or Expired.
// nil: nobody's is, and Next tells when to come again. Call it until nil after every event that can change
// the answer: an Offer that held, a lease's end, a scrape, and Next's time.
func (g *Gate) Release(now time.Time) *Ticket {
	g.pass++
	g.next = time.Time{}
	for class := range g.queues {
		if t := g.releaseClass(now, class); t != nil {
			g.next = now
			return t
		}
	}
	return nil
}

func (g *Gate) releaseClass(now time.Time, class int) *Ticket {
	q := g.queues[class]
	for i, t := range q[:min(len(q), LookAhead)] {
		if !t.Deadline.After(now) {
			g.removeAt(class, i)
			t.state = Expired
			return t
		}
		if i == 0 {
			g.wakeAt(t.Deadline)
		}
		r, v := g.best(now, t)
		if g.admits(t, r, v) {
			g.removeAt(class, i)
			g.admit(now, t)
			return t
		}
		g.wait(now, t, r, v)
	}
	return nil
}

// admits is the rule of the package comment.
func (g *Gate) admits(t *Ticket, r *pool.Replica, v pool.View) bool {
	if !v.Below() {
		return false
	}
	if !g.bulk[t.Class] {
		return true
	}
	return v.Wait < bulkShare*v.Tau && g.wanted[r.Slot] != g.pass
}

func (g *Gate) admit(now time.Time, t *Ticket) {
	g.charge(now, t)
	t.state = Admitted
}

// wait notes what a held ticket waits for: its replica, and the time at which that has drained.
func (g *Gate) wait(now time.Time, t *Ticket, r *pool.Replica, v pool.View) {
	limit := v.Tau
	if g.bulk[t.Class] {
		limit *= bulkShare
	} else {
		g.wanted[r.Slot] = g.pass
	}
	if v.Wait < limit {
		return // a seat, KV or an interactive ticket stands in its way: an event ends that, not time
	}
	if d, ok := r.Drains(now, v, limit); ok {
		g.wakeAt(now.Add(max(d, tick)))
	}
}

func (g *Gate) wakeAt(t time.Time) {
	if g.next.IsZero() || t.Before(g.next) {
		g.next = t
	}
}

// Next returns when Release must be called even if nothing happens; the zero time: only after an event.
func (g *Gate) Next() time.Time { return g.next }

// Leave takes a held ticket back. It reports whether the ticket was held.
func (g *Gate) Leave(t *Ticket) bool {
	if t.state != Held {
		return false
	}
	i, _ := slices.BinarySearchFunc(g.queues[t.Class], t, compare)
	g.removeAt(t.Class, i)
	t.state = Left
	return true
}

// Held returns how many tickets of a class are held.
func (g *Gate) Held(class int) int { return len(g.queues[class]) }

// Len returns how many tickets are held.
func (g *Gate) Len() int { return g.held }

func (g *Gate) removeAt(class, i int) {
	g.queues[class] = slices.Delete(g.queues[class], i, i+1)
	g.held--
}

// compare orders tickets of a class by deadline, then by arrival; no two are equal.
func compare(a, b *Ticket) int {
	if c := a.Deadline.Compare(b.Deadline); c != 0 {
		return c
	}
	if a.seq < b.seq {
		return -1
	}
	if a.seq > b.seq {
		return 1
	}
	return 0
}
