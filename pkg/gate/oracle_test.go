package gate

import (
	"maps"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// oracle is the gate's rule as DESIGN.md, section 4, and the package comment state it, over unordered lists of held
// tickets. It does not decide: it says what the gate must.
type oracle struct {
	now     time.Time
	classes []Class
	pool    *pool.Pool
	best    bestFunc
	queues  []*slowQueue
	owed    []float64
	past    []*past
	marks   map[int]bool   // classes that the pass has looked at in vain, and whether no replica takes any of them
	due     bool           // the last admission at once made a class owed
	seen    map[string]int // how often a rule made the difference
}

func newOracle(classes []Class, p *pool.Pool) *oracle {
	o := &oracle{now: epoch, classes: classes, pool: p, owed: make([]float64, len(classes)), seen: map[string]int{}}
	for range classes {
		o.queues, o.past = append(o.queues, newSlowQueue(1<<30)), append(o.past, &past{since: epoch, flows: map[string]*past{}})
	}
	return o
}

func (o *oracle) hold(t *Ticket) {
	q := o.queues[t.Class]
	o.tick(t.Class)
	q.add(t)
	if flows := o.past[t.Class].flows; flows[t.Flow] == nil {
		flows[t.Flow] = &past{since: o.now}
	}
}

func (o *oracle) take(t *Ticket, admitted bool) {
	o.tick(t.Class)
	p := o.past[t.Class]
	if admitted && p.stuck {
		p.admitted(t.Tokens)
		p.flows[t.Flow].admitted(t.Tokens)
	}
	q := o.queues[t.Class]
	defer func() {
		maps.DeleteFunc(p.flows, func(f string, _ *past) bool { return !slices.Contains(q.known(), f) })
	}()
	if q.take(t, admitted); len(q.tickets) == 0 {
		o.mark(t.Class, false)
		o.owed[t.Class] = min(o.owed[t.Class], 0)
	}
}

// settle counts an admission, and sets due if it makes a class owed; owed says that it went because something was owed
// to its class. Called before take.
func (o *oracle) settle(t *Ticket, owed bool) {
	for c, class := range o.classes {
		was := o.owed[c]
		if class.Share == 0 {
			continue
		}
		if c == t.Class {
			o.owed[c] -= (1 - class.Share) * t.Tokens
			if !owed && o.owed[c] < -65536 {
				o.owed[c] = min(was, -65536)
			}
			continue
		}
		o.owed[c] += class.Share * t.Tokens
		if len(o.queues[c].tickets) == 0 {
			o.owed[c] = min(o.owed[c], 0)
		}
		o.owed[c] = min(o.owed[c], 65536)
		o.due = o.due || was <= 0 && o.owed[c] > 0
	}
	if owed {
		o.seen["owed"]++
	}
}

// elsewhere is how many other replicas than r hold bulk that is not prefilled, and k how many may.
func (o *oracle) elsewhere(r *pool.Replica) (n, k int) {
	return o.pool.BulkElsewhere(o.now, r), o.pool.BulkReplicas(o.now)
}

// admissible says whether the ticket may go to its best replica, where wanted are the replicas that others of another
// kind wait for.
func (o *oracle) admissible(t *Ticket, r *pool.Replica, v pool.View, owed bool, wanted []*pool.Replica) bool {
	switch {
	case v.Wait >= 0.5 || v.Used >= 1 || !v.Free:
		return false
	case !o.classes[t.Class].Bulk || owed:
		return true
	case v.Wait >= 0.125:
	case slices.Contains(wanted, r):
		o.seen["wanted"]++
	case v.KV > 0 && v.KV+t.Need > 0.7:
		o.seen["KV"]++
	default:
		n, k := o.elsewhere(r)
		if n >= k {
			o.seen["k"]++
		}
		return n < k
	}
	return false
}

// offering is what must become of a new ticket.
func (o *oracle) offering(t *Ticket) State {
	ahead := false
	for c, q := range o.queues {
		ahead = ahead || len(q.tickets) > 0 && (c <= t.Class || o.owed[c] > 0)
	}
	if !ahead {
		if r, v := o.best(o.now, t); o.admissible(t, r, v, false, nil) {
			return Admitted
		}
	}
	held, bytes := o.queues[t.Class].tickets, t.Bytes
	for _, h := range held {
		bytes += h.Bytes
	}
	if class := o.classes[t.Class]; len(held) >= class.Most {
		o.seen["tickets"]++
		return Refused
	} else if bytes > class.Bytes {
		o.seen["bytes"]++
		return Refused
	}
	if o.hopeless(t) {
		return Shed
	}
	return Held
}

// decide is the ticket that the next pass must end, how, and whether for what its class is owed; nil for none, and then
// when to come again.
func (o *oracle) decide() (_ *Ticket, _ State, owed bool, deadline time.Time) {
	o.marks = nil
	for _, q := range o.queues {
		var first *Ticket
		for _, t := range q.tickets { // in order of arrival
			if first == nil || t.Deadline.Before(first.Deadline) {
				first = t
			}
		}
		if first != nil && !first.Deadline.After(o.now) {
			return first, Expired, false, o.now
		}
		if first != nil && (deadline.IsZero() || first.Deadline.Before(deadline)) {
			deadline = first.Deadline
		}
	}
	var wanted []*pool.Replica
	o.marks = map[int]bool{}
	open, openForBulk := o.open()
	for _, class := range o.order() {
		q, owed := o.queues[class], o.owed[class] > 0
		if !open {
			o.marks[class] = len(q.tickets) > 0
		}
		sight := q.sight()
		if len(sight) < len(q.tickets) {
			o.seen["look-ahead"]++
		}
		for i, t := range sight {
			r, v := o.best(o.now, t)
			if o.admissible(t, r, v, owed, wanted) {
				if i > 0 && t.Flow != sight[0].Flow {
					o.seen["flow passed"]++
				}
				return t, Admitted, owed, o.now
			}
			if !o.classes[class].Bulk {
				wanted = append(wanted, r)
			}
		}
		if open && len(q.tickets) > 0 {
			o.marks[class] = o.classes[class].Bulk && !owed && !openForBulk
		}
	}
	return nil, Offered, false, deadline
}

// order is the classes as a pass looks at them: first those that are owed something.
func (o *oracle) order() (all []int) {
	for _, owed := range []bool{true, false} {
		for c := range o.classes {
			if (o.owed[c] > 0) == owed {
				all = append(all, c)
			}
		}
	}
	return all
}
