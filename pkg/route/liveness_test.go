package route

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/classify"
	"github.com/weirproxy/weir/pkg/pick"
	"github.com/weirproxy/weir/pkg/pool"
)

// clockwork drives a router in virtual time as the edge does: it releases after each event and at Next, and at no
// other time.
type clockwork struct {
	*testing.T
	rng    *rand.Rand
	r      *Router
	now    time.Time
	held   []*Decision
	picked []lifetime
	missed time.Duration // longest that a held request could have gone and was not woken
	woken  int           // passes that only Next asked for and that released somebody
	looks  int
}

// lifetime is a picked request and the time of its end.
type lifetime struct {
	d   *Decision
	end time.Time
}

func (c *clockwork) sort(d *Decision) {
	switch d.State {
	case Held:
		c.held = append(c.held, d)
	case Picked:
		c.picked = append(c.picked, lifetime{d, c.now.Add(time.Duration(c.rng.ExpFloat64() * 4e8))})
	}
}

// release is what the edge does after an event.
func (c *clockwork) release() int {
	n := c.r.Release(c.now)
	c.held = slices.DeleteFunc(c.held, func(d *Decision) bool {
		if ready(d) {
			c.sort(d)
			return true
		}
		if !d.ticket.Deadline.After(c.now) {
			c.Fatalf("a request is held %v after its deadline", c.now.Sub(d.ticket.Deadline))
		}
		return false
	})
	return n
}

// bests returns the replica that each held request waits for at t, and whether a pass would let it go there: the
// rule of DESIGN.md, section 4, over what is held, with the replicas that held bulk at the last event.
func (c *clockwork) bests(t time.Time) (replicas []*pool.Replica, goes []bool) {
	wanted := map[*pool.Replica]bool{}
	for _, d := range c.held {
		best := pick.Best(t, c.r.pool, &d.query)
		v, bulk := best.View, d.ticket.Class == 1
		replicas = append(replicas, best.First)
		need := best.First.Share(best.Load.Uncached + best.Load.Output)
		goes = append(goes, v.Below() && (!bulk || v.Wait < v.Tau/4 && !wanted[best.First] && (v.KV == 0 || v.KV+need <= 0.7) &&
			c.r.pool.BulkElsewhere(c.now, best.First) < c.r.pool.BulkReplicas(c.now)))
		wanted[best.First] = wanted[best.First] || !bulk
	}
	return replicas, goes
}

// drained returns whether the replica of a held request has drained for it between the last event and t. That
// another replica has become the best since the last pass, by a charge or as a backlog drains while the first is
// short of a seat, is seen at the next event only.
func (c *clockwork) drained(t time.Time) bool {
	slices.SortStableFunc(c.held, func(a, b *Decision) int {
		return cmp.Or(a.ticket.Class-b.ticket.Class, a.ticket.Deadline.Compare(b.ticket.Deadline))
	})
	before, went := c.bests(c.now)
	after, goes := c.bests(t)
	for i := range c.held {
		if goes[i] && !went[i] && after[i] == before[i] && after[i] == c.held[i].Choice.First {
			return true
		}
	}
	return false
}

// look asks at random times before the next event whether somebody waits for nothing.
func (c *clockwork) look(until time.Time) {
	gap := until.Sub(c.now)
	for range 3 {
		if t := c.now.Add(time.Duration(c.rng.Int64N(int64(gap) + 1))); len(c.held) > 0 && t.Before(until) {
			c.looks++
			if c.drained(t) {
				c.missed = max(c.missed, until.Sub(t))
			}
		}
	}
}

// run lives through arrivals until the last request has ended.
func (c *clockwork) run(arrivals int, every float64, request func() *Request, scrape bool) {
	arrival, page := c.now, c.now
	for arrivals > 0 || len(c.held) > 0 || len(c.picked) > 0 {
		soonest := time.Time{}
		consider := func(t time.Time, on bool) {
			if on && (soonest.IsZero() || t.Before(soonest)) {
				soonest = t
			}
		}
		consider(arrival, arrivals > 0)
		consider(page, scrape)
		for _, l := range c.picked {
			consider(l.end, true)
		}
		next := c.r.Next()
		consider(next, !next.IsZero())
		if soonest.IsZero() {
			c.Fatalf("%d held and nothing to come for", len(c.held))
		}
		c.look(soonest)
		c.now = soonest
		i := slices.IndexFunc(c.picked, func(l lifetime) bool { return l.end.Equal(c.now) })
		switch {
		case i >= 0:
			d := c.picked[i].d
			c.picked = slices.Delete(c.picked, i, i+1)
			if c.r.Done(c.now, d, Answered) {
				c.release()
			}
		case arrivals > 0 && arrival.Equal(c.now):
			arrivals--
			arrival = c.now.Add(time.Duration(c.rng.ExpFloat64() * every * 1e9))
			d := c.r.Route(c.now, request())
			if c.sort(d); d.Due {
				c.release()
			}
		case scrape && page.Equal(c.now):
			page = c.now.Add(time.Second)
			for i := range c.r.pool.Replicas {
				c.r.Observe(c.now, endpoint(i), pool.Sample{At: c.now, Tokens: c.now.Sub(epoch).Seconds(), HasTokens: true})
			}
			c.release()
		default:
			if c.release() > 0 {
				c.woken++
			}
		}
	}
}

// No ticket is stranded: with nothing but its events and Next to go by, the gate lets each one go when its
// replica has drained, a tick later at most, or ends its wait at its deadline.
func TestNobodyIsStranded(t *testing.T) {
	looks, woken := 0, 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 21))
		cfg := holding(30)
		cfg.Classes[1].SharePercent = 0 // bulk goes by its own rule only
		c := &clockwork{T: t, rng: rng, r: smallOf(1+rng.IntN(4), cfg), now: epoch}
		c.run(120, 0.08/float64(len(c.r.pool.Replicas)), func() *Request { return randomRequest(rng) }, seed%2 == 0)
		idle(t, c.r, c.now)
		if c.missed > 2*time.Millisecond {
			t.Errorf("seed %d: a request waited %v longer than its replica", seed, c.missed)
		}
		looks, woken = looks+c.looks, woken+c.woken
	}
	if looks < 2000 || woken < 100 {
		t.Errorf("%d looks at held requests, %d woken by Next: the load is too tame", looks, woken)
	}
}

// A replica that hangs lets nobody wait beyond the deadline, though nothing ever happens again.
func TestHungPoolEndsEveryWait(t *testing.T) {
	r := newSmall(1, 100)
	fill(r, at(0))
	var held []*Decision
	for i := range 100 {
		q := ask(i, 50)
		q.Class = classify.Input{HeaderClass: []string{"interactive", "bulk"}[i%2], HeaderDeadline: []string{"", "1s", "2s"}[i%3]}
		held = append(held, r.Route(at(0), q))
	}
	r.Release(at(0))
	passes, now := 0, at(0)
	for next := r.Next(); !next.IsZero(); next = r.Next() {
		if passes++; passes > 200 || !next.After(now) {
			t.Fatalf("pass %d: Next is %v after the last", passes, next.Sub(now))
		}
		now = next
		r.Release(now)
		for i, d := range held {
			if late := !d.ticket.Deadline.After(now); ready(d) != late || late && d.Outcome != Late {
				t.Fatalf("at %v request %d with deadline %v: ready %v, outcome %v", now, i, d.ticket.Deadline, ready(d), d.Outcome)
			}
		}
	}
	if r.gate.Len() != 0 {
		t.Errorf("%d still held", r.gate.Len())
	}
}
