package gate

import "time"

// class is a priority class at the gate.
type class struct {
	Class
	*queue
	owed float64 // tokens
}

// Configure gives the gate other classes, the most urgent first, and another knee; Ticket.Class counts in them from now
// on. A class of the same name goes on with the tickets that it holds. One that is not named any more takes none, and
// keeps those that it holds, right behind the class that it stood behind, until their waits end. Release is due after it.
func (g *Gate) Configure(now time.Time, classes []Class, knee bool) {
	had := map[string]*class{}
	for _, c := range g.classes {
		had[c.Name] = c
	}
	g.live = make([]*class, len(classes))
	place := map[*class]int{}
	for i, told := range classes {
		c := had[told.Name]
		if c == nil {
			c = &class{queue: newQueue(maxFlows)}
		}
		c.Class = told
		c.over = max(rateShare*told.Deadline.Seconds(), minRateTime)
		if told.Share == 0 {
			c.owed = 0
		}
		g.live[i], place[c] = c, i
	}
	g.classes = g.withDraining(place)
	g.knee = knee
	g.next = now
}

// withDraining is the live classes and, each behind the one that it stood behind, those that still hold tickets and have
// no place any more.
func (g *Gate) withDraining(place map[*class]int) []*class {
	before := make([][]*class, len(g.live)+1)
	at := 0
	for _, c := range g.classes {
		if i, ok := place[c]; ok {
			at = i + 1
		} else if c.len() > 0 {
			before[at] = append(before[at], c)
		}
	}
	var all []*class
	for i := range before {
		all = append(all, before[i]...)
		if i < len(g.live) {
			all = append(all, g.live[i])
		}
	}
	return all
}
