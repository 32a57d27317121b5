package gate

import (
	"cmp"
	"time"

	"github.com/google/btree"
)

const (
	// lookAhead bounds the tickets of one class that a pass looks at, and flowAhead those of one flow, so that
	// a flow whose tickets all wait for one replica hides nobody else's. With more than that held, a ticket
	// behind them waits even if its own replica is free.
	lookAhead = 64
	flowAhead = 32
	// maxFlows bounds the flows that a class tells apart, as many as it holds requests by default; the tickets of more
	// share one, which gets one turn.
	maxFlows = 10_000
	// degree of the trees: a node of pointers is some cache lines long.
	degree = 16
)

// queue is the held tickets of one class. Flows share it by start-time fair queueing (Goyal, Vin and Cheng,
// 1996) in tokens: the flow with the least start goes first, each ticket admitted moves its flow's start on by
// its tokens, and a flow that comes anew starts no earlier than the latest of the admitted ones did. Inside a
// flow the earliest deadline goes first. Adding, removing and taking the next are O(log n).
//
// Two flows whose next tickets always may go differ, in tokens admitted in any stretch in which both are held, by
// at most one ticket of each. A flow that waits for its replica catches up when that takes it.
type queue struct {
	most   int
	flows  map[string]*flow     // those with tickets, and those whose start is still ahead
	order  *btree.BTreeG[*flow] // with tickets
	idle   *btree.BTreeG[*flow] // without
	expiry *btree.BTreeG[*Ticket]
	nodes  *btree.FreeListG[*Ticket] // of the flows' trees
	start  float64                   // the latest of an admitted flow, tokens
	bytes  int64
	tokens int64 // of all tickets
	due    byDeadline
	drain  drain
	pace
	told   float64   // tokens of the refused that have yet to come back
	toldAt time.Time // of told
}

// flow is one tenant's tickets in a class.
type flow struct {
	name    string
	start   float64 // tokens
	seq     uint64  // of the ticket with which it came last
	tokens  int64   // of its tickets
	drain   drain
	tickets *btree.BTreeG[*Ticket]
}

// newQueue returns an empty queue that tells at most so many flows apart.
func newQueue(most int) *queue {
	return &queue{
		most: most, flows: map[string]*flow{},
		order: btree.NewG(degree, earlier), idle: btree.NewG(degree, earlier),
		expiry: btree.NewG(degree, sooner), nodes: btree.NewFreeListG[*Ticket](btree.DefaultFreeListSize),
	}
}

// earlier orders flows by start, then by arrival; no two are equal.
func earlier(a, b *flow) bool {
	return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.seq, b.seq)) < 0
}

// sooner orders tickets by deadline, then by arrival; no two are equal.
func sooner(a, b *Ticket) bool {
	if c := a.Deadline.Compare(b.Deadline); c != 0 {
		return c < 0
	}
	return a.seq < b.seq
}

func (q *queue) len() int { return q.expiry.Len() }

func (q *queue) add(now time.Time, t *Ticket) {
	f := q.flow(t.Flow)
	q.elapse(now, f)
	if f.tickets.Len() == 0 {
		q.idle.Delete(f)
		f.start, f.seq = max(f.start, q.start), t.seq
		q.order.ReplaceOrInsert(f)
	}
	t.flow = f
	f.tickets.ReplaceOrInsert(t)
	q.expiry.ReplaceOrInsert(t)
	q.bytes += t.Bytes
	q.count(f, t, int64(t.Tokens))
}

// count counts tokens of t in, or out if they are negative.
func (q *queue) count(f *flow, t *Ticket, tokens int64) {
	q.tokens += tokens
	f.tokens += tokens
	q.due.add(t.Deadline, tokens)
}

// flow returns the flow of that name, or the one that all beyond the most share.
func (q *queue) flow(name string) *flow {
	f := q.find(name)
	if f == nil {
		if len(q.flows) >= q.most {
			name = overflow
		}
		f = &flow{name: name, drain: drain{clock: q.clock}, tickets: btree.NewWithFreeListG(degree, sooner, q.nodes)}
		q.flows[name] = f
	}
	return f
}

// find returns that flow if it is known.
func (q *queue) find(name string) *flow {
	f := q.flows[name]
	if f == nil && len(q.flows) >= q.most {
		f = q.flows[overflow]
	}
	return f
}

// overflow cannot be a header's value: it holds a control character.
const overflow = "\x00"

// admitted takes t out and charges its flow.
func (q *queue) admitted(now time.Time, t *Ticket) {
	f := t.flow
	q.elapse(now, f)
	if q.stuck {
		q.drain.admitted(t.Tokens)
		f.drain.admitted(t.Tokens)
	}
	q.order.Delete(f)
	q.start = max(q.start, f.start)
	f.start += t.Tokens
	q.order.ReplaceOrInsert(f)
	q.dropped(now, t)
	for f, ok := q.idle.Min(); ok && f.start <= q.start; f, ok = q.idle.Min() {
		q.idle.DeleteMin()
		delete(q.flows, f.name)
	}
}

// dropped takes t out. A flow without tickets is remembered until the others have passed its start.
func (q *queue) dropped(now time.Time, t *Ticket) {
	f := t.flow
	q.elapse(now, f)
	t.flow = nil
	f.tickets.Delete(t)
	q.expiry.Delete(t)
	q.bytes -= t.Bytes
	q.count(f, t, -int64(t.Tokens))
	switch {
	case q.len() == 0: // nobody waits: what was is no longer unfair to anybody
		q.setStuck(now, false)
		q.order.Delete(f)
		q.idle.Clear(true)
		clear(q.flows)
		q.start = 0
	case f.tickets.Len() > 0:
	case f.start > q.start:
		q.order.Delete(f)
		q.idle.ReplaceOrInsert(f)
	default:
		q.order.Delete(f)
		delete(q.flows, f.name)
	}
}

// each calls look with the tickets in sight, in order, until it returns false.
func (q *queue) each(look func(*Ticket) bool) {
	left, more := lookAhead, true
	q.order.Ascend(func(f *flow) bool {
		ahead := flowAhead
		f.tickets.Ascend(func(t *Ticket) bool {
			if left == 0 || ahead == 0 {
				return false
			}
			left--
			ahead--
			more = look(t)
			return more
		})
		return more && left > 0
	})
}
