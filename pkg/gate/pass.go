package gate

import (
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// Release makes one pass and returns the first ticket whose wait is over, Admitted and charged or Expired.
// nil: nobody's is, and Next tells when to come again. Call it until nil after every event that can change
// the answer: a lease's end, a Leave, a scrape, and at Next's time, which an Offer may set to now.
func (g *Gate) Release(now time.Time) *Ticket {
	g.next = time.Time{}
	t := g.expire(now)
	if t == nil && g.held > 0 {
		if g.open(now) {
			t = g.releaseFirst(now)
		} else {
			for _, c := range g.classes {
				c.setStuck(now, c.len() > 0)
			}
		}
	}
	if t != nil {
		g.next = now
	}
	return t
}

// open reports whether any replica is below its knee: without one nobody can go, and no ticket needs a look. That is
// the usual state of a full pool, and costs one look at each replica.
func (g *Gate) open(now time.Time) bool {
	if !g.knee {
		return true
	}
	views, _ := g.pool.Views(now)
	all := allDown(views)
	for i := range views {
		if views[i].Below() && (all || !views[i].Down) {
			return true
		}
	}
	for i, r := range g.pool.Replicas {
		g.wakeFor(now, r, views[i], views[i].Tau, views[i].Used, kneeKV)
	}
	return false
}

// openForBulk reports the same for bulk, by its own rule and the least need.
func (g *Gate) openForBulk(now time.Time) bool {
	k, all := g.pool.BulkReplicas(now), g.pool.BulkElsewhere(now, nil)
	views, _ := g.pool.Views(now)
	down := allDown(views)
	for i, r := range g.pool.Replicas {
		v := &views[i]
		if !v.NoBulk && (down || !v.Down) && (!g.knee || v.Below()) && v.Wait < bulkWait*v.Tau && v.KV <= bulkKV && (all < k || all == k && r.HoldsBulk()) {
			return true
		}
	}
	for i, r := range g.pool.Replicas {
		if !views[i].NoBulk {
			g.wakeFor(now, r, views[i], bulkWait*views[i].Tau, views[i].KV, bulkKV)
		}
	}
	if all > k { // those that hold bulk themselves have one less elsewhere
		all--
	}
	g.waitForBulk(now, nil, all)
	return false
}

// releaseFirst admits the first ticket in order that may go; nil if none may. Each that may not stands in the queue of
// its replica for those who are looked at after it.
func (g *Gate) releaseFirst(now time.Time) *Ticket {
	g.pool.Unqueue()
	for _, owed := range []bool{true, false} {
		for _, c := range g.classes {
			if c.len() == 0 || (c.owed > 0) != owed {
				continue
			}
			closed := c.Bulk && !owed && !g.openForBulk(now)
			if !closed {
				if t := g.releaseClass(now, c, owed); t != nil {
					return t
				}
			}
			c.setStuck(now, closed)
		}
	}
	return nil
}

// expire ends the wait of the first ticket whose deadline has passed.
func (g *Gate) expire(now time.Time) *Ticket {
	for _, c := range g.classes {
		t, ok := c.expiry.Min()
		switch {
		case !ok:
		case t.Deadline.After(now):
			g.wakeAt(t.Deadline)
		default:
			c.dropped(now, t)
			g.leave(t, Expired)
			return t
		}
	}
	return nil
}

func (g *Gate) releaseClass(now time.Time, c *class, owed bool) (out *Ticket) {
	c.each(func(t *Ticket) bool {
		t.owed = owed
		r, v := g.best(now, t)
		why := g.admits(now, t, r, v, owed)
		if why == Nothing {
			out = t
			return false
		}
		t.Why = why
		g.wait(now, t, r, v, owed)
		return true
	})
	if out != nil {
		c.admitted(now, out)
		g.admit(now, out, owed)
		g.leave(out, Admitted)
	}
	return out
}

// admits is the rule of the package comment: Nothing, or what keeps the ticket from its replica. owed says that something
// is owed to its class.
func (g *Gate) admits(now time.Time, t *Ticket, r *pool.Replica, v pool.View, owed bool) Why {
	bulk := t.class.Bulk && !owed
	switch {
	case g.knee && !v.Free:
		return Seat
	case g.knee && v.Used >= 1:
		return KV
	case g.knee && !v.Below():
		return Backlog
	case bulk && v.Wait >= bulkWait*v.Tau:
		return BulkBacklog
	case bulk && v.KV > max(bulkKV-t.Need, 0):
		return BulkKV
	case bulk && g.pool.BulkElsewhere(now, r) >= g.pool.BulkReplicas(now):
		return BulkReplicas
	}
	return Nothing
}

// wait notes the time at which a held ticket's replica may take it.
func (g *Gate) wait(now time.Time, t *Ticket, r *pool.Replica, v pool.View, owed bool) {
	limit, kv, most := v.Tau, v.Used, kneeKV
	if t.class.Bulk && !owed {
		limit, kv, most = limit*bulkWait, v.KV, max(bulkKV-t.Need, 0)
		if v.Wait < limit {
			g.waitForBulk(now, r, g.pool.BulkElsewhere(now, r))
		}
	}
	g.wakeFor(now, r, v, limit, kv, most)
	g.pool.Queue(r, t.Work)
}

// wakeFor asks for a pass when time alone brings r below a wait, and its share of KV from kv to most, if it does.
func (g *Gate) wakeFor(now time.Time, r *pool.Replica, v pool.View, wait, kv, most float64) {
	if v.Wait < wait && kv <= most {
		return // another ticket or bulk elsewhere stands in the way
	}
	if at, ok := r.Opens(now, v, wait, kv, most); ok {
		if soonest := now.Add(tick); at.Before(soonest) {
			at = soonest
		}
		g.wakeAt(at)
	}
}

// waitForBulk is the wait until fewer than the n replicas beside r hold bulk, or more than n may.
func (g *Gate) waitForBulk(now time.Time, r *pool.Replica, n int) {
	if n < g.pool.BulkReplicas(now) {
		return
	}
	if n < len(g.pool.Replicas) {
		g.wakeAt(now.Add(max(g.pool.BulkGrows(now, n), tick)))
	}
	if d, ok := g.pool.BulkDrains(now, r); ok {
		g.wakeAt(now.Add(max(d, tick)))
	}
}

func (g *Gate) wakeAt(t time.Time) {
	if g.next.IsZero() || t.Before(g.next) {
		g.next = t
	}
}

// allDown reports whether no replica is to be picked, so that the rule that keeps off those that fail is void (package pick).
func allDown(views []pool.View) bool {
	for i := range views {
		if !views[i].Down {
			return false
		}
	}
	return true
}
