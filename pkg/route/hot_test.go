package route

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/classify"
	"github.com/weirproxy/weir/pkg/pool"
)

// scene plays arrivals against a router in virtual time. A request lives out*D after its prefill, as the step model has
// it at the time of its charge; hung replicas never answer, and their clients leave after patience.
type scene struct {
	r        *Router
	now      time.Time
	hung     map[string]bool
	patience float64 // seconds
	ends     ends
	waiting  []*scened
}

type scened struct {
	d      *Decision
	at     time.Time // of its end
	output float64
	name   string
	state  func(name string, waited float64, o Outcome)
}

type ends []*scened

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(*scened)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// until plays everything up to t.
func (s *scene) until(t time.Time) {
	for {
		next := t
		if len(s.ends) > 0 && s.ends[0].at.Before(next) {
			next = s.ends[0].at
		}
		if n := s.r.Next(); !n.IsZero() && n.Before(next) {
			next = n
		}
		if next.After(s.now) {
			s.now = next
		}
		moved := false
		for len(s.ends) > 0 && !s.ends[0].at.After(s.now) {
			x := heap.Pop(&s.ends).(*scened)
			end := Answered
			if s.hung[x.d.Choice.First.Endpoint] {
				end = Unanswered
			} else {
				x.d.Status = 200
			}
			s.r.Done(s.now, x.d, end)
			x.state(x.name, x.d.Wait.Seconds(), end)
			moved = true
		}
		if s.r.Release(s.now) > 0 || moved {
			s.settle()
			continue
		}
		if !s.now.Before(t) {
			return
		}
	}
}

// settle starts those whose wait is over.
func (s *scene) settle() {
	rest := s.waiting[:0]
	for _, x := range s.waiting {
		select {
		case <-x.d.Ready():
			s.begin(x)
		default:
			rest = append(rest, x)
		}
	}
	s.waiting = rest
}

func (s *scene) begin(x *scened) {
	if x.d.State == Refused {
		s.r.Done(s.now, x.d, Answered)
		x.state(x.name, x.d.Wait.Seconds(), x.d.Outcome)
		return
	}
	v := x.d.Choice.View
	life := v.Wait + x.d.Choice.Load.Uncached*v.Prefill + x.output*v.Step
	if s.hung[x.d.Choice.First.Endpoint] {
		life = s.patience
	}
	x.at = s.now.Add(time.Duration(life * float64(time.Second)))
	heap.Push(&s.ends, x)
}

func (s *scene) send(name string, q *Request, output float64, state func(string, float64, Outcome)) {
	x := &scened{d: s.r.Route(s.now, q), output: output, name: name, state: state}
	if x.d.Ready() != nil {
		s.waiting = append(s.waiting, x)
		s.r.Release(s.now)
		s.settle()
		return
	}
	s.begin(x)
}

// One long prefix that everybody shares, and more requests than one replica has seats: they spread once the wait for a
// seat costs more than to compute the prefix elsewhere, and nobody is refused. While the pool has seats, an unrelated
// request does not wait, and when it has none, for the first that comes free.
func TestHotPrefixSpreads(t *testing.T) {
	for _, c := range []struct {
		requests, least int     // seats in use on each replica after a second
		small           float64 // seconds
	}{{56, 8, 0.01}, {100, 16, 3}} {
		cfg, _ := pool.Default("8B")
		cfg.Seats = 16
		r := New(Default(), pool.New("llm", []string{"10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000", "10.0.0.4:8000"}, cfg))
		r.start.Store(epoch.Add(-time.Hour).UnixNano())
		s := &scene{r: r, now: at(0)}
		refused, slowest, small := 0, 0.0, -1.0
		done := func(name string, waited float64, o Outcome) {
			switch {
			case o != Answered:
				refused++
			case name == "small":
				small = waited
			default:
				slowest = max(slowest, waited)
			}
		}
		for i := range c.requests {
			s.send("hot", chat(words(7, 20_000), words(100+i, 20)), 256, done)
		}
		s.until(at(0.5))
		s.send("small", ask(3, 10), 5, done)
		s.until(at(1))
		for _, st := range r.Stats(s.now).Replicas {
			if st.Leases < c.least {
				t.Errorf("%d requests: %s has %d seats in use after a second", c.requests, st.Endpoint, st.Leases)
			}
		}
		s.until(at(120))
		if len(s.waiting) > 0 || refused > 0 {
			t.Errorf("%d requests: %d still held, %d refused", c.requests, len(s.waiting), refused)
		}
		if small < 0 || small > c.small {
			t.Errorf("%d requests: a small one of its own prefix waited %v s", c.requests, small)
		}
		if slowest > 20 {
			t.Errorf("%d requests: one of the hot prefix waited %v s", c.requests, slowest)
		}
		idle(t, r, s.now)
	}
}

// The home of a popular prefix hangs: what would go there goes elsewhere within seconds, and requests of others are not
// behind it.
func TestHungHomeOfAPopularPrefix(t *testing.T) {
	cfg, _ := pool.Default("8B")
	r := New(Config{Pick: Default().Pick, Queue: ClassesDeadlines, Rule: BelowKnee, Classes: classify.Default(), MaxHold: 5 * time.Minute},
		pool.New("llm", []string{"10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000", "10.0.0.4:8000"}, cfg))
	r.start.Store(epoch.Add(-time.Hour).UnixNano())
	s := &scene{r: r, now: at(0), hung: map[string]bool{}, patience: 60}
	worst, refused := 0.0, 0
	done := func(name string, waited float64, o Outcome) {
		if name == "small" {
			worst = max(worst, waited)
		}
		if o != Answered && o != Unanswered {
			refused++
		}
	}
	home := ""
	s.send("warm", chat(words(7, 20_000), "?"), 5, func(string, float64, Outcome) {})
	home = s.ends[0].d.Choice.First.Endpoint
	s.until(at(5))
	s.hung[home] = true
	rng := rand.New(rand.NewPCG(1, 1))
	counter := 0.0
	for i := range 320 {
		s.send("hot", chat(words(7, 20_000), words(100+i, 20)), 5, done)
		if i%8 == 0 {
			s.send("small", ask(1000+i, 10), 5, done)
		}
		s.until(s.now.Add(time.Duration(rng.ExpFloat64() * 0.06 * float64(time.Second))))
		for _, st := range r.Stats(s.now).Replicas { // each scraped as often as may be: the counter of the hung one stands still
			if st.Endpoint != home {
				counter++
				r.Observe(s.now, st.Endpoint, pool.Sample{At: s.now, Tokens: counter, HasTokens: true})
			} else {
				r.Observe(s.now, st.Endpoint, pool.Sample{At: s.now, Tokens: 1, HasTokens: true})
			}
		}
	}
	s.until(s.now.Add(2 * time.Minute))
	if refused > 0 {
		t.Errorf("%d refused", refused)
	}
	if worst > 1 {
		t.Errorf("a small request waited %v s at the gate", worst)
	}
}
