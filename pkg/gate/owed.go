package gate

import "time"

// maxOwed bounds what a class is owed, in tokens, so that one that had to wait long does not then keep everybody
// else out for long, nor is kept out for long because it had more: eight steps of vLLM's default size.
const maxOwed = 8 * 8192

// admit charges the ticket and settles what the classes are owed; owed says that it went for that.
func (g *Gate) admit(now time.Time, t *Ticket, owed bool) {
	t.state = Admitted
	g.charge(now, t)
	for _, c := range g.classes {
		had := c.owed
		if c.settle(t, owed); had <= 0 && c.owed > 0 {
			g.next = now // it may go where it could not
		}
	}
}

// settle counts an admission of n tokens in what the class is owed, in tokens:
//
//	owed += share*n         of another class: to maxOwed at most, and to 0 while nobody of it is held
//	owed -= (1-share)*n     of its own: to -maxOwed at least, unless it went because of what it was owed
//
// So a class of which somebody is held from one instant to another gets its share of the tokens admitted between
// them, less 2*maxOwed and one ticket, as long as its replicas take it. What it gets beside its share counts
// towards it, and is forgiven as others get theirs.
func (c *class) settle(t *Ticket, owed bool) {
	switch had := c.owed; {
	case c.Share == 0:
	case c == t.class && owed:
		c.owed -= (1 - c.Share) * t.Tokens
	case c == t.class:
		c.owed = max(had-(1-c.Share)*t.Tokens, min(had, -maxOwed))
	case c.len() == 0:
		c.owed = min(had+c.Share*t.Tokens, 0)
	default:
		c.owed = min(had+c.Share*t.Tokens, maxOwed)
	}
}
