package route

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/classify"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/prompt"
)

func TestDeadline(t *testing.T) {
	long := ask(1, 20_000) // 5.56 s times 0.1 s per token of slack
	own := func(r *Router, q *Request) time.Duration {
		var p prompt.Prompt
		new(prompt.Parser).Parse(&p, prompt.Input{Path: q.Path, Body: q.Body})
		return time.Duration(10 * float64(p.Tokens) * 27.8e-6 * 1e9)
	}
	for _, c := range []struct {
		name    string
		q       *Request
		class   classify.Input
		maxHold time.Duration
		want    time.Duration
		asked   bool // no slack is added
	}{
		{"class", ask(1, 100), classify.Input{}, time.Hour, 30 * time.Second, false},
		{"bulk", ask(1, 100), classify.Input{HeaderClass: "bulk"}, time.Hour, 5 * time.Minute, false},
		{"client's", ask(1, 100), classify.Input{HeaderDeadline: "3s"}, time.Hour, 3 * time.Second, true},
		{"client's of a long prompt", long, classify.Input{HeaderDeadline: "3s"}, time.Hour, 3 * time.Second, true},
		{"route's", ask(1, 100), classify.Input{RouteDeadline: "4s"}, time.Hour, 4 * time.Second, false},
		{"route's and client's", ask(1, 100), classify.Input{RouteDeadline: "4s", HeaderDeadline: "1h"}, time.Hour, 4 * time.Second, true},
		{"long prompt", long, classify.Input{}, time.Hour, 30 * time.Second, false},
		{"max_hold bounds it", ask(1, 100), classify.Input{}, 10 * time.Second, 10 * time.Second, true},
		{"max_hold bounds bulk", long, classify.Input{HeaderClass: "bulk"}, time.Minute, time.Minute, true},
	} {
		cfg := Default()
		cfg.MaxHold = c.maxHold
		r := newRouter(1, cfg)
		c.q.Class = c.class
		want := c.want + own(r, c.q)
		if c.asked {
			want = c.want
		}
		if got := r.Route(at(5), c.q).ticket.Deadline.Sub(at(5)); (got - want).Abs() > time.Microsecond {
			t.Errorf("%s: deadline in %v, want %v", c.name, got, want)
		}
	}
	if o := own(nil, long); o < 5500*time.Millisecond || o > 5700*time.Millisecond {
		t.Errorf("20,000 tokens extend a deadline by %v, want about 5.56 s", o)
	}
}

// The slowest prompt token that is valid, and the longest body: the deadline is still max_hold.
func TestDeadlineDoesNotOverflow(t *testing.T) {
	replica, _ := pool.Default("8B")
	replica.PerPromptToken = time.Minute
	r := New(Default(), pool.New("llm", []string{endpoint(0)}, replica))
	d := &Decision{Prompt: prompt.Prompt{Tokens: 1 << 40}}
	d.classify(at(0), r, &Request{})
	if got := d.ticket.Deadline.Sub(at(0)); got != 5*time.Minute {
		t.Errorf("deadline in %v, want 5m", got)
	}
}

func TestRetry(t *testing.T) {
	r := newRouter(1, holding(1))
	fill(r, at(0)) // 8.7 s of work: 8.2 above tau
	late := r.Route(at(0), ask(1, 10))
	full := r.Route(at(0), ask(2, 10))
	if full.State != Refused || full.Outcome != Full || full.Retry < 8*time.Second || full.Retry > 11*time.Second {
		t.Errorf("full: %v, %v, retry in %v, want about 9 s", full.State, full.Outcome, full.Retry)
	}
	if r.Release(at(0)) != 0 || ready(late) {
		t.Error("released at once")
	}
	deadline := late.ticket.Deadline
	if n := r.Release(deadline.Add(-1)); n != 0 || ready(late) {
		t.Errorf("%d released before the deadline", n)
	}
	if n := r.Release(deadline); n != 1 || !ready(late) || late.State != Refused || late.Outcome != Late {
		t.Errorf("%d released: state %v, outcome %v", n, late.State, late.Outcome)
	}
	if late.Wait != deadline.Sub(at(0)) || late.Retry < time.Second || late.Retry > 9*time.Second {
		t.Errorf("late: waited %v, retry in %v", late.Wait, late.Retry)
	}
}

// Whoever is late before a pass has looked at it is told the backlog of its replica all the same.
func TestRetryOfOneNotLookedAt(t *testing.T) {
	r := newRouter(1, Default())
	fill(r, at(0)) // 8.7 s of work
	var all []*Decision
	for i := range 3 {
		q := ask(i, 10)
		q.Class.HeaderDeadline = "1s"
		all = append(all, r.Route(at(0), q))
	}
	if n := r.Release(at(1)); n != 3 {
		t.Fatalf("%d released", n)
	}
	for i, d := range all {
		if d.Outcome != Late || d.Retry < 7*time.Second || d.Retry > 9*time.Second {
			t.Errorf("request %d: outcome %v, retry in %v, want about 8 s", i, d.Outcome, d.Retry)
		}
	}
}
