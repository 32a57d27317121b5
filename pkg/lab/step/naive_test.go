package step

import (
	"math"
	"slices"
)

// naive is the slow replica that the model is held against. It shares no code with it: memory is a list of
// pages that know their users, every question is answered by looking through everything, and the step
// formula is computed in milliseconds from the published constants.
type naive struct {
	pages               []*page
	line, batch         []*client // waiting (arrivals behind, preempted in front) and running
	coming              []*client // by arrival
	budget, seats       int
	clock, until        int64 // ns: of the last change, and the end of the step (-1: idle)
	c0, a, b, p         float64
	stamp               int
	preempted, computed int
}

type page struct {
	text  uint64
	users []*client
	freed int
}

type client struct {
	text               []uint64
	in, out            int
	enters             int64
	got                int  // answer tokens
	done               int  // tokens in memory
	now                int  // tokens in this step
	answering, seen    bool // prompt computed; was admitted once
	pages              []*page
	cached, preempted  int
	first, last, admit int64
}

func (n *naive) freePages() []*page {
	var out []*page
	for _, p := range n.pages {
		if len(p.users) == 0 {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(x, y *page) int { return x.freed - y.freed })
	return out
}

func (n *naive) find(text uint64) *page {
	for _, p := range n.pages {
		if text != 0 && p.text == text {
			return p
		}
	}
	return nil
}

func (n *naive) leave(c *client) {
	for i := len(c.pages) - 1; i >= 0; i-- {
		p := c.pages[i]
		p.users = slices.DeleteFunc(p.users, func(o *client) bool { return o == c })
		if len(p.users) == 0 {
			n.stamp++
			p.freed = n.stamp
		}
	}
	c.pages, c.done, c.answering = nil, 0, false
}

// put writes c's next tokens into memory that the caller knows to be there.
func (n *naive) put(c *client, tokens int) {
	c.now = tokens
	for pos := c.done; pos < c.done+tokens; pos++ {
		if pos/16 == len(c.pages) {
			p := n.freePages()[0]
			p.text, p.users = 0, []*client{c}
			c.pages = append(c.pages, p)
		}
		if pos%16 == 15 && pos/16 < len(c.text) && n.find(c.text[pos/16]) == nil {
			c.pages[pos/16].text = c.text[pos/16]
		}
	}
	if !c.answering {
		n.computed += tokens
	}
}

func (n *naive) begin() {
	left, evicted := n.budget, false
	for _, c := range slices.Clone(n.batch) {
		if !slices.Contains(n.batch, c) {
			continue
		}
		tokens := min(c.in+c.got-c.done, left)
		for slices.Contains(n.batch, c) && (c.done+tokens+15)/16-len(c.pages) > len(n.freePages()) {
			loser := n.batch[len(n.batch)-1]
			n.batch = n.batch[:len(n.batch)-1]
			n.leave(loser)
			loser.preempted++
			n.preempted++
			n.line = append([]*client{loser}, n.line...)
			evicted = true
		}
		if slices.Contains(n.batch, c) {
			n.put(c, tokens)
			left -= tokens
		}
	}
	for !evicted && left > 0 && len(n.line) > 0 && len(n.batch) < n.seats && n.enter(n.line[0], &left) {
	}
	n.until = -1
	if len(n.batch) == 0 {
		return
	}
	ms := n.c0 + n.a*float64(len(n.batch))
	for _, c := range n.batch {
		if c.answering {
			ms += n.b * float64(c.in+c.got)
		} else {
			ms += n.p * float64(c.now)
		}
	}
	n.until = n.clock + int64(math.Round(ms*1e6))
}

func (n *naive) enter(c *client, left *int) bool {
	var hit []*page
	for i := 0; i < len(c.text) && (i+1)*16 < c.in+c.got; i++ {
		p := n.find(c.text[i])
		if p == nil {
			break
		}
		hit = append(hit, p)
	}
	tokens := min(c.in+c.got-16*len(hit), *left)
	free := 0
	for _, p := range n.freePages() {
		if !slices.Contains(hit, p) {
			free++
		}
	}
	if (16*len(hit)+tokens+15)/16-len(hit) > free {
		return false
	}
	n.line = n.line[1:]
	n.batch = append(n.batch, c)
	for _, p := range hit {
		p.users = append(p.users, c)
	}
	c.pages, c.done = hit, 16*len(hit)
	if !c.seen {
		c.seen, c.cached, c.admit = true, c.done, n.clock
	}
	n.put(c, tokens)
	*left -= tokens
	return true
}

func (n *naive) end() {
	for _, c := range slices.Clone(n.batch) {
		c.done += c.now
		if c.done < c.in+c.got {
			continue
		}
		c.answering = true
		c.got++
		c.last = n.clock
		if c.got == 1 {
			c.first = n.clock
		}
		if c.got == c.out {
			n.batch = slices.DeleteFunc(n.batch, func(o *client) bool { return o == c })
			n.leave(c)
		}
	}
}

func (n *naive) to(now int64) {
	for {
		at := int64(math.MaxInt64)
		if n.until >= 0 {
			at = n.until
		}
		if len(n.coming) > 0 {
			at = min(at, n.coming[0].enters)
		}
		if at > now {
			return
		}
		n.clock = at
		for len(n.coming) > 0 && n.coming[0].enters == at {
			n.line = append(n.line, n.coming[0])
			n.coming = n.coming[1:]
		}
		if n.until == at {
			n.end()
			n.begin()
		} else if n.until < 0 {
			n.begin()
		}
	}
}

func (n *naive) abort(c *client) {
	if slices.Contains(n.batch, c) {
		n.leave(c)
	}
	for _, list := range []*[]*client{&n.batch, &n.line, &n.coming} {
		*list = slices.DeleteFunc(*list, func(o *client) bool { return o == c })
	}
}
