package gate

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// ledger is what start-time fair queueing goes by, as the plain history of one class since it last held nobody.
type ledger struct {
	served []served
	came   map[string]int // how many were served when the flow's first held ticket came
}

type served struct {
	flow          string
	start, tokens float64
}

// start is the flow's start: the virtual time or its own finish when it came, then what it got since.
func (l *ledger) start(flow string) (s float64) {
	since := l.came[flow]
	for _, e := range l.served[:since] {
		s = max(s, e.start)
		if e.flow == flow {
			s = max(s, e.start+e.tokens)
		}
	}
	for _, e := range l.served[since:] {
		if e.flow == flow {
			s += e.tokens
		}
	}
	return s
}

// ahead reports whether a flow without tickets has a start that no admitted one's has reached.
func (l *ledger) ahead(flow string) bool {
	finish, latest := 0.0, 0.0
	for _, e := range l.served {
		latest = max(latest, e.start)
		if e.flow == flow {
			finish = e.start + e.tokens
		}
	}
	return finish > latest
}

// slowQueue is a queue as an unordered list.
type slowQueue struct {
	ledger
	most    int
	tickets []*Ticket
	label   map[*Ticket]string // the flow, or that of the rest
	first   map[string]uint64  // by flow: the arrival with which it came last
	looked  []*Ticket          // what sight returned; nil after a change
}

// known is the flows that are told apart.
func (q *slowQueue) known() (all []string) {
	for _, t := range q.tickets {
		all = append(all, q.label[t])
	}
	for _, e := range q.served {
		if q.ahead(e.flow) {
			all = append(all, e.flow)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (q *slowQueue) add(t *Ticket) {
	label := t.Flow
	if len(q.served)+len(q.tickets) < q.most {
		// nobody can be beyond the most
	} else if known := q.known(); !slices.Contains(known, label) && len(known) >= q.most {
		label = "\x00"
	}
	if !slices.ContainsFunc(q.tickets, func(o *Ticket) bool { return q.label[o] == label }) {
		q.came[label], q.first[label] = len(q.served), t.seq
	}
	q.label[t], q.looked = label, nil
	q.tickets = append(q.tickets, t)
}

func (q *slowQueue) take(t *Ticket, admitted bool) {
	if label := q.label[t]; admitted {
		q.served = append(q.served, served{label, q.start(label), t.Tokens})
	}
	q.looked = nil
	q.tickets = slices.DeleteFunc(q.tickets, func(o *Ticket) bool { return o == t })
	if len(q.tickets) == 0 {
		q.ledger = ledger{came: map[string]int{}}
	}
}

// sight is the tickets that a pass looks at, in its order.
func (q *slowQueue) sight() (all []*Ticket) {
	if q.looked != nil {
		return q.looked
	}
	flows := map[string][]*Ticket{}
	starts := map[string]float64{}
	var names []string
	for _, t := range q.tickets {
		label := q.label[t]
		if flows[label] == nil {
			names, starts[label] = append(names, label), q.start(label)
		}
		flows[label] = append(flows[label], t)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(starts[a], starts[b]), cmp.Compare(q.first[a], q.first[b]))
	})
	for _, name := range names {
		one := flows[name] // in order of arrival
		slices.SortStableFunc(one, func(a, b *Ticket) int { return a.Deadline.Compare(b.Deadline) })
		all = append(all, one[:min(32, len(one))]...)
	}
	q.looked = all[:min(64, len(all))]
	return q.looked
}

func newSlowQueue(most int) *slowQueue {
	return &slowQueue{most: most, ledger: ledger{came: map[string]int{}}, label: map[*Ticket]string{}, first: map[string]uint64{}}
}

// gateway-api-inference-extension#1982 and llm-d-async PR#380 of the queue: whatever is added, admitted from any place in sight and taken back, the order is that
// of the ledger, nothing is forgotten that still counts, and nothing is remembered that does not.
func TestQueueAgreesWithLedger(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		most, names := 1+rng.IntN(8), 1+rng.IntN(12)
		fast, slow := newQueue(most), newSlowQueue(most)
		long := 20 + rng.IntN(120)
		for step := range 600 {
			all := slow.tickets
			switch n := len(all); {
			case n == 0 || n < long && rng.IntN(2) == 0 && step%300 < 250:
				a := &Ticket{
					Flow: fmt.Sprint(rng.IntN(names)), Deadline: at(float64(rng.IntN(20))), Tokens: 1000 * rng.ExpFloat64(),
					Bytes: rng.Int64N(100), seq: uint64(step),
				}
				fast.add(at(0), a)
				slow.add(a)
			case rng.IntN(4) == 0:
				a := all[rng.IntN(n)]
				fast.dropped(at(0), a)
				slow.take(a, false)
			default:
				sight := slow.sight()
				a := sight[int(rng.ExpFloat64()*2)%len(sight)]
				fast.admitted(at(0), a)
				slow.take(a, true)
			}
			var got []*Ticket
			fast.each(func(a *Ticket) bool {
				got = append(got, a)
				return true
			})
			if want := slow.sight(); !slices.Equal(got, want) {
				t.Fatalf("seed %d step %d: %d tickets in sight, want %d in another order", seed, step, len(got), len(want))
			}
			bytes := int64(0)
			for _, a := range slow.tickets {
				bytes += a.Bytes
			}
			if known := slow.known(); len(fast.flows) != len(known) || len(known) > most+1 || fast.len() != len(slow.tickets) || fast.bytes != bytes {
				t.Fatalf("seed %d step %d: %d flows, want %d of at most %d; %d tickets, %d bytes", seed, step, len(fast.flows), len(known), most, fast.len(), fast.bytes)
			}
			if n := fast.order.Len() + fast.idle.Len(); n != len(fast.flows) {
				t.Fatalf("seed %d step %d: %d flows in order, %d in all", seed, step, n, len(fast.flows))
			}
		}
	}
}
