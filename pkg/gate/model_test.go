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
	Leave(*Ticket) bool
	Held(class int) int
	Len() int
}

type (
	bestFunc   = func(time.Time, *Ticket) (*pool.Replica, pool.View)
	chargeFunc = func(time.Time, *Ticket)
	gateFunc   = func(bulk []bool, most, replicas int, best bestFunc, charge chargeFunc) gated
)

func realGate(bulk []bool, most, replicas int, best bestFunc, charge chargeFunc) gated {
	return New(bulk, most, replicas, best, charge)
}

// model is the gate's rule as DESIGN.md, section 4, and the package comment state it, over one unordered list of
// held tickets. It does not decide: it says what the gate must.
type model struct {
	rng  *rand.Rand
	now  time.Time
	long time.Duration // of deadlines
	bulk []bool
	most int
	pool *pool.Pool
	gate gated
	err  error // the first thing that the gate did wrong

	held    []*Ticket // in order of arrival
	charged []*Ticket // admitted, lease not yet released
	count   [Left + 1]int
	offered int
}

// wish is a ticket's owner: what each replica costs it beyond the wait there, in seconds.
type wish struct {
	extra  []float64
	tokens float64
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
	if m.bulk[t.Class] {
		if v.Wait >= 0.125 {
			m.failf("bulk admitted with %v s of work ahead", v.Wait)
		}
		if slices.Contains(m.wanted(now, t.Class), r) {
			m.failf("bulk admitted to replica %d while an interactive ticket waits for it", r.Slot)
		}
	}
	w := t.Owner.(*wish)
	m.pool.Charge(now, &w.lease, r, pool.Load{Prompt: w.tokens, Uncached: w.tokens})
}

// sight is the held tickets of a class that a pass looks at, in its order.
func (m *model) sight(class int) (tickets []*Ticket) {
	for _, t := range m.held {
		if t.Class == class {
			tickets = append(tickets, t)
		}
	}
	slices.SortStableFunc(tickets, func(a, b *Ticket) int { return a.Deadline.Compare(b.Deadline) })
	return tickets[:min(32, len(tickets))]
}

// wanted is the replicas that interactive tickets in sight, of classes before this one, wait for.
func (m *model) wanted(now time.Time, class int) (all []*pool.Replica) {
	for c := range class {
		for _, t := range m.sight(c) {
			if !m.bulk[c] && t.Deadline.After(now) {
				r, _ := m.best(now, t)
				all = append(all, r)
			}
		}
	}
	return all
}

func (m *model) admissible(now time.Time, t *Ticket, wanted []*pool.Replica) bool {
	r, v := m.best(now, t)
	ok := v.Wait < 0.5 && v.KV < 1 && v.Free
	if m.bulk[t.Class] {
		ok = ok && v.Wait < 0.125 && !slices.Contains(wanted, r)
	}
	return ok
}

// decide is the ticket that the next pass must end, and how; nil for none, and then when to come again.
func (m *model) decide() (*Ticket, State, time.Time) {
	var next time.Time
	wake := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for class := range m.bulk {
		wanted := m.wanted(m.now, class)
		for _, t := range m.sight(class) {
			if !t.Deadline.After(m.now) {
				return t, Expired, m.now
			}
			if m.admissible(m.now, t, wanted) {
				return t, Admitted, m.now
			}
			wake(t.Deadline)
			r, v := m.best(m.now, t)
			limit := 0.5
			if m.bulk[class] {
				limit = 0.125
			}
			if d, ok := r.Drains(m.now, v, limit); ok && v.Wait >= limit {
				wake(m.now.Add(max(d, time.Millisecond)))
			}
		}
	}
	return nil, Offered, next
}

func (m *model) forget(t *Ticket) bool {
	i := slices.Index(m.held, t)
	if i >= 0 {
		m.held = slices.Delete(m.held, i, i+1)
	}
	return i >= 0
}

// heldOf counts the held tickets of a class.
func (m *model) heldOf(class int) (n int) {
	for _, t := range m.held {
		if t.Class == class {
			n++
		}
	}
	return n
}

func (m *model) offer() {
	t := &Ticket{Class: m.rng.IntN(len(m.bulk)), Owner: m.wish()}
	t.Deadline = m.now.Add(1 + time.Duration(m.rng.IntN(3))*time.Duration(m.rng.ExpFloat64()*float64(m.long)))
	want := Held
	ahead := slices.ContainsFunc(m.held, func(h *Ticket) bool { return h.Class <= t.Class })
	if !ahead && m.admissible(m.now, t, nil) {
		want = Admitted
	} else if m.heldOf(t.Class) >= m.most {
		want = Refused
	}
	m.offered++
	if got := m.gate.Offer(m.now, t); got != want || t.State() != want {
		m.failf("Offer of class %d = %d, state %d, want %d with %d held", t.Class, got, t.State(), want, len(m.held))
	}
	switch t.State() {
	case Held:
		m.held = append(m.held, t)
	case Admitted:
		m.charged = append(m.charged, t)
		m.count[Admitted]++
	case Refused:
		m.count[Refused]++
	}
}

func (m *model) wish() *wish {
	w := &wish{tokens: 1 + m.rng.ExpFloat64()*600, extra: make([]float64, len(m.pool.Replicas))}
	for i := range w.extra {
		w.extra[i] = float64(m.rng.IntN(3)) * 0.4 * m.rng.Float64()
	}
	return w
}

// pass makes passes until nothing changes, each compared with decide.
func (m *model) pass() {
	for m.err == nil {
		want, state, next := m.decide()
		got := m.gate.Release(m.now)
		if got != want || got != nil && got.State() != state {
			m.failf("Release = %+v, want %+v in state %d", got, want, state)
		}
		if n := m.gate.Next(); got == nil && !n.Equal(next) {
			m.failf("Next is in %v, want %v", n.Sub(m.now), next.Sub(m.now))
		}
		if got == nil {
			return
		}
		if !m.forget(got) {
			m.failf("Release ended a ticket that was not held")
		}
		m.count[got.State()]++
		if got.State() == Admitted {
			m.charged = append(m.charged, got)
		}
	}
}

func (m *model) leave() {
	t := m.held[m.rng.IntN(len(m.held))]
	if !m.gate.Leave(t) || m.gate.Leave(t) || t.State() != Left {
		m.failf("a held ticket left in state %d", t.State())
	}
	m.forget(t)
	m.count[Left]++
}

// end ends an admitted request, which can then no longer leave.
func (m *model) end() {
	i := m.rng.IntN(len(m.charged))
	t := m.charged[i]
	m.charged = slices.Delete(m.charged, i, i+1)
	if m.gate.Leave(t) || t.State() != Admitted {
		m.failf("an admitted ticket left")
	}
	t.Owner.(*wish).lease.Release(m.now, true)
}

// conserve checks that every ticket is in exactly one state.
func (m *model) conserve() {
	held := 0
	for class := range m.bulk {
		n := 0
		for _, t := range m.held {
			if t.State() != Held {
				m.failf("a held ticket is in state %d", t.State())
			}
			if t.Class == class {
				n++
			}
		}
		if m.gate.Held(class) != n {
			m.failf("%d held of class %d, want %d", m.gate.Held(class), class, n)
		}
		held += n
	}
	sum := m.count[Admitted] + m.count[Expired] + m.count[Refused] + m.count[Left]
	if m.gate.Len() != held || held+sum != m.offered {
		m.failf("%d held, %d ended, %d offered", m.gate.Len(), sum, m.offered)
	}
}

func (m *model) step() {
	m.now = m.now.Add(time.Duration(m.rng.ExpFloat64() * 3e7))
	switch k := m.rng.IntN(100); {
	case k < 45:
		m.offer()
	case k < 70 && len(m.charged) > 0:
		m.end()
	case k < 75 && len(m.held) > 0:
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
