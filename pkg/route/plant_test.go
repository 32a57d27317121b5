package route

import (
	"bytes"
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"
)

// plant is a router before replicas that take their prompts one after the other at the router's own rates: requests come
// and end in virtual time, and the router is asked to release as the edge asks it.
type plant struct {
	*testing.T
	r      *Router
	rng    *rand.Rand
	now    time.Time
	events happenings
	seq    int
	tokens map[string]float64 // of the admitted, prompt and expected answer, by class and flow
	ends   map[string]map[Outcome]int
	waits  map[string][]float64 // of the admitted at the gate, seconds, by class and flow
	held   map[*Decision]func(*Decision)
	seen   func(*Decision) // of every admission, in order
}

type happening struct {
	at  time.Time
	seq int
	do  func()
}

type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return h[i].at.Before(h[j].at) || h[i].at.Equal(h[j].at) && h[i].seq < h[j].seq
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

func newPlant(t *testing.T, r *Router, seed uint64) *plant {
	return &plant{
		T: t, r: r, rng: rand.New(rand.NewPCG(seed, 8)), now: epoch, tokens: map[string]float64{},
		ends: map[string]map[Outcome]int{}, waits: map[string][]float64{}, held: map[*Decision]func(*Decision){},
	}
}

func (p *plant) after(d time.Duration, do func()) {
	p.seq++
	heap.Push(&p.events, happening{p.now.Add(d), p.seq, do})
}

// send routes a request; end is told when it is over.
func (p *plant) send(q *Request, end func(*Decision)) {
	d := p.r.Route(p.now, q)
	switch d.State {
	case Held:
		p.held[d] = end
	case Picked:
		p.serve(d, end)
	default:
		p.over(d, Unanswered, end)
	}
	if d.Due {
		p.release()
	}
}

func (p *plant) release() {
	for {
		d, at, load := p.r.releaseOne(p.now)
		if d == nil {
			return
		}
		end := p.held[d]
		delete(p.held, d)
		if at == nil {
			p.over(d, Unanswered, end)
			continue
		}
		d.pin(at, load)
		p.serve(d, end)
	}
}

// key names who a request belongs to.
func key(d *Decision) string { return d.Class + d.ticket.Flow }

// serve ends a picked request when its prompt and its answer are done: the wait, then the tokens at the replica's pace.
func (p *plant) serve(d *Decision, end func(*Decision)) {
	p.tokens[key(d)] += d.ticket.Tokens
	p.waits[key(d)] = append(p.waits[key(d)], d.Wait.Seconds())
	if p.seen != nil {
		p.seen(d)
	}
	v := d.Choice.View
	takes := v.Wait + d.Choice.Load.Uncached*v.Prefill + d.Choice.Load.Output*(v.Step+0.001)
	p.after(time.Duration(takes*1e9), func() { p.over(d, Answered, end) })
}

func (p *plant) over(d *Decision, o Outcome, end func(*Decision)) {
	if p.r.Done(p.now, d, o) {
		p.release()
	}
	if d.Outcome == Late {
		p.waits["late "+key(d)] = append(p.waits["late "+key(d)], d.Wait.Seconds())
	}
	if p.ends[key(d)] == nil {
		p.ends[key(d)] = map[Outcome]int{}
	}
	p.ends[key(d)][d.Outcome]++
	if end != nil {
		end(d)
	}
}

// stream sends requests as a Poisson process until the end.
func (p *plant) stream(perSecond float64, until time.Time, request func() *Request) {
	gap := time.Duration(p.rng.ExpFloat64() / perSecond * 1e9)
	p.after(gap, func() {
		if p.now.Before(until) {
			p.send(request(), nil)
			p.stream(perSecond, until, request)
		}
	})
}

// run lives until a time, with the gate's own clock.
func (p *plant) run(until time.Time) {
	for {
		next := p.r.Next()
		if len(p.events) > 0 && (next.IsZero() || !p.events[0].at.After(next)) {
			next = p.events[0].at
		}
		if next.IsZero() || next.After(until) {
			p.now = until
			return
		}
		p.now = maxTime(p.now, next)
		if len(p.events) > 0 && !p.events[0].at.After(p.now) {
			heap.Pop(&p.events).(happening).do()
		} else {
			p.release()
		}
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sized is a request of so many tokens that shares nothing with any other.
func sized(tokens int, class, flow string) *Request {
	q := &Request{Path: "/v1/embeddings", Body: bytes.Repeat([]byte("{"), 4*tokens), Flow: flow}
	q.Class.HeaderClass = class
	return q
}

// capacity is the requests of so many tokens that one replica takes in a second, with so many running.
func capacity(r *Router, tokens, running int) float64 {
	rates := r.pool.Config.Rates()
	decode := rates.Decode(float64(running), float64(running*tokens))
	return 1 / (float64(tokens) * rates.Prefill(decode))
}
