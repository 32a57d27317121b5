package gate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// gated is what the model drives: the gate, or a wrong one.
type gated interface {
	Offer(time.Time, *Ticket) State
	Release(time.Time) *Ticket
	Next() time.Time
	Due(time.Time) bool
	Leave(time.Time, *Ticket) bool
	Held(class int) (int, int64)
	Len() int
}

type (
	bestFunc   = func(time.Time, *Ticket) (*pool.Replica, pool.View)
	chargeFunc = func(time.Time, *Ticket)
	gateFunc   = func(classes []Class, p *pool.Pool, best bestFunc, charge chargeFunc) gated
)

func realGate(classes []Class, p *pool.Pool, best bestFunc, charge chargeFunc) gated {
	return New(classes, true, p, best, charge)
}

// model drives a gate through random events and compares all that it does with the oracle, which is told of each.
type model struct {
	*oracle
	rng  *rand.Rand
	long time.Duration // of deadlines
	gap  float64       // between events, ns

	clients int // of a closed loop, each with one request under way; 0: requests come whatever is under way
	gate    gated
	err     error // the first thing that the gate did wrong

	charged []*Ticket // admitted, lease not yet released
	count   [Left + 1]int
	offered int
}

// wish is a ticket's owner: what each replica costs it beyond the wait there, in seconds.
type wish struct {
	extra  []float64
	tokens float64 // on its replica
	need   float64
	lease  pool.Lease
}

func (m *model) failf(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
}

// best is any function of the load: the wait and a preference.
func (m *model) best(now time.Time, t *Ticket) (*pool.Replica, pool.View) {
	w := t.Owner.(*wish)
	t.Need = w.need
	var first *pool.Replica
	var view pool.View
	for i, r := range m.pool.Replicas {
		if v := r.View(now); first == nil || v.Wait+w.extra[i] < view.Wait+w.extra[first.Slot] {
			first, view = r, v
		}
	}
	return first, view
}

// charge checks what must hold of every admission, whoever made it, and charges.
func (m *model) charge(now time.Time, t *Ticket) {
	r, v := m.best(now, t)
	if v.Wait >= 0.5 || v.KV >= 1 || !v.Free {
		m.failf("class %d admitted above the knee: %+v", t.Class, v)
	}
	w := t.Owner.(*wish)
	m.pool.Charge(now, &w.lease, r, pool.Load{Prompt: w.tokens, Uncached: w.tokens, Bulk: m.classes[t.Class].Bulk})
}

func (m *model) wish() *wish {
	w := &wish{tokens: 1 + m.rng.ExpFloat64()*600, extra: make([]float64, len(m.pool.Replicas))}
	for i := range w.extra {
		w.extra[i] = float64(m.rng.IntN(3)) * 0.4 * m.rng.Float64()
	}
	if m.rng.IntN(3) == 0 {
		w.need = m.rng.Float64() * 0.9
	}
	return w
}

func (m *model) offer() {
	t := &Ticket{
		Class: m.rng.IntN(len(m.classes)), Flow: []string{"", "a", "a", "a", "b", "c"}[m.rng.IntN(6)], Owner: m.wish(),
		Tokens: m.rng.ExpFloat64() * []float64{100, 5000}[m.rng.IntN(2)], Bytes: m.rng.Int64N(100),
	}
	wait := 1 + time.Duration(m.rng.IntN(8))*time.Duration(m.rng.ExpFloat64()*float64(m.long))
	t.Deadline = m.now.Add(min(wait, time.Hour)) // the most that the gate is promised
	m.due = false
	want := m.offering(t)
	m.offered++
	got := m.gate.Offer(m.now, t)
	if got != want || t.State() != want {
		m.failf("Offer of class %d = %d, state %d, want %d with %d held", t.Class, got, t.State(), want, m.gate.Len())
	}
	switch t.State() {
	case Held:
		m.hold(t)
	case Admitted:
		m.charged = append(m.charged, t)
		m.settle(t, false)
		m.count[Admitted]++
	case Refused, Shed:
		m.count[got]++
	}
	if due := t.State() == Held || m.due; due && (!m.gate.Next().Equal(m.now) || !m.gate.Due(m.now)) {
		m.failf("after an Offer of class %d a pass is due, and Next is in %v", t.Class, m.gate.Next().Sub(m.now))
	}
}

// pass makes passes until nothing changes, each compared with the oracle.
func (m *model) pass() {
	for m.err == nil {
		want, state, owed, deadline := m.decide()
		for class, stuck := range m.marks {
			m.mark(class, stuck)
		}
		got := m.gate.Release(m.now)
		if got != want || got != nil && got.State() != state {
			m.failf("Release = %+v, want %+v in state %d", got, want, state)
			return
		}
		if got == nil {
			m.quiet(m.gate.Next(), deadline)
			return
		}
		m.count[got.State()]++
		if got.State() == Admitted {
			m.charged = append(m.charged, got)
			m.settle(got, owed)
		}
		m.take(got, got.State() == Admitted)
	}
}

// quiet checks that nothing can happen by time alone before next, which is not after the first deadline: it goes to some
// time before it, and nobody may go there whose best replica is still the same.
func (m *model) quiet(next, deadline time.Time) {
	if late := !deadline.IsZero() && (next.IsZero() || next.After(deadline)); late || !next.IsZero() && !next.After(m.now) {
		m.failf("Next is in %v, with a deadline in %v", next.Sub(m.now), deadline.Sub(m.now))
		return
	}
	before := map[*Ticket]*pool.Replica{}
	for _, q := range m.queues {
		for _, t := range q.tickets {
			before[t], _ = m.best(m.now, t)
		}
	}
	ahead := 20 * time.Second
	if !next.IsZero() {
		ahead = min(ahead, next.Sub(m.now)-time.Millisecond)
	}
	if ahead <= 0 || m.rng.IntN(4) > 0 {
		return
	}
	m.now = m.now.Add(time.Duration(m.rng.Int64N(int64(ahead)) + 1))
	if t, state, _, _ := m.decide(); t != nil {
		if r, v := m.best(m.now, t); state == Expired || r == before[t] {
			m.failf("a ticket of class %d may go before Next, state %d: %+v", t.Class, state, v)
		}
	}
	m.seen["quiet"]++
}

// leave takes a held ticket back, which can then leave no more.
func (m *model) leave() {
	c := m.rng.IntN(len(m.classes))
	held := m.queues[c].tickets
	if len(held) == 0 {
		return
	}
	t := held[m.rng.IntN(len(held))]
	if !m.gate.Leave(m.now, t) || m.gate.Leave(m.now, t) || t.State() != Left {
		m.failf("a held ticket left in state %d", t.State())
	}
	m.take(t, false)
	m.count[Left]++
}

// end ends an admitted request, which can then no longer leave.
func (m *model) end() {
	i := m.rng.IntN(len(m.charged))
	t := m.charged[i]
	m.charged = slices.Delete(m.charged, i, i+1)
	if m.gate.Leave(m.now, t) || t.State() != Admitted {
		m.failf("an admitted ticket left")
	}
	t.Owner.(*wish).lease.Release(m.now, true)
}

// conserve checks that every ticket is in exactly one state.
func (m *model) conserve() {
	held := 0
	for class, q := range m.queues {
		bytes := int64(0)
		for _, t := range q.tickets {
			if bytes += t.Bytes; t.State() != Held {
				m.failf("a held ticket is in state %d", t.State())
			}
		}
		if n, b := m.gate.Held(class); n != len(q.tickets) || b != bytes {
			m.failf("%d held of class %d with %d bytes, want %d with %d", n, class, b, len(q.tickets), bytes)
		}
		held += len(q.tickets)
	}
	sum := m.count[Admitted] + m.count[Expired] + m.count[Refused] + m.count[Shed] + m.count[Left]
	if m.gate.Len() != held || held+sum != m.offered {
		m.failf("%d held, %d ended, %d offered", m.gate.Len(), sum, m.offered)
	}
}

func (m *model) step() {
	m.now = m.now.Add(time.Duration(m.rng.ExpFloat64() * m.gap))
	switch k := m.rng.IntN(100); {
	case k < 45 && (m.clients == 0 || m.gate.Len()+len(m.charged) < m.clients):
		m.offer()
	case k < 70 && len(m.charged) > 0:
		m.end()
	case k < 75:
		m.leave()
	case k < 85:
		r := m.pool.Replicas[m.rng.IntN(len(m.pool.Replicas))]
		r.Observe(m.now, pool.Sample{
			At: m.now, Tokens: float64(m.now.Sub(epoch) / 1e9), HasTokens: m.rng.IntN(4) > 0, KV: m.rng.Float64() * 1.1, HasKV: m.rng.IntN(4) == 0,
		})
	case k < 90:
		if n := m.gate.Next(); n.After(m.now) {
			m.now = n
		}
	}
	if m.err == nil && m.rng.IntN(8) > 0 { // now and then the next event comes first
		m.pass()
	}
	m.conserve()
}
