package route

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// tell has a replica's counter move, from which on it tells of progress.
func tell(r *Router, now time.Time, tokens float64) {
	for _, rep := range r.pool.Replicas {
		r.Observe(now, rep.Endpoint, pool.Sample{At: now, HasTokens: true, Tokens: tokens})
	}
}

// Of a prompt that a client left, its replica is thought to hold what was cached of it and what has drained since, in whole
// blocks, whichever way the client left and whenever; of one that failed, or where nothing works, what others have computed.
func TestIndexHoldsWhatHadDrained(t *testing.T) {
	headers := func(events bool) func(r *Router, d *Decision, now time.Time) {
		return func(r *Router, d *Decision, now time.Time) {
			d.Status, d.Events = 200, events
			r.Serve(now, d, d.Choice.First.Endpoint)
			r.Done(now, d, Answered)
		}
	}
	left := func(r *Router, d *Decision, now time.Time) { r.Done(now, d, Unanswered) }
	status := func(n int) func(r *Router, d *Decision, now time.Time) {
		return func(r *Router, d *Decision, now time.Time) {
			d.Status = n
			r.Done(now, d, Answered)
		}
	}
	type what int
	const (
		drained what = iota
		all
		old
	)
	for _, c := range []struct {
		name  string
		blind bool // no counters are read
		end   func(r *Router, d *Decision, now time.Time)
		want  what
	}{
		{"left before any answer", false, left, drained},
		{"left before any answer, blind", true, left, drained},
		{"a stream, left at its headers or later", false, headers(true), drained},
		{"a stream where no counter tells better", true, headers(true), all},
		{"answered in one piece", false, headers(false), all},
		{"refused", false, status(400), old},
		{"crashed", false, status(503), old},
		{"a fault of weir's", false, func(r *Router, d *Decision, now time.Time) { r.Done(now, d, Failed) }, old},
		{"on a replica that fails", false, func(r *Router, d *Decision, now time.Time) {
			r.Refuse(now, d.Choice.First.Endpoint)
			r.Done(now, d, Unanswered)
		}, old},
		{"a stream on a replica that fails", false, func(r *Router, d *Decision, now time.Time) {
			r.Refuse(now, d.Choice.First.Endpoint)
			headers(true)(r, d, now)
		}, old},
		{"on a replica that hangs", false, func(r *Router, d *Decision, now time.Time) { r.Done(now.Add(time.Minute), d, Unanswered) }, old},
		{"on the second, after the first was tried", false, func(r *Router, d *Decision, now time.Time) {
			d.Status, d.Events = 200, true
			r.Serve(now, d, d.Choice.Second.Endpoint) // it begins there only now
			r.Done(now, d, Answered)
		}, old},
	} {
		for _, share := range []float64{0, 0.01, 0.3, 0.77, 1} {
			r := newRouter(2, Default())
			first := r.Route(at(0), ask(1, 4000)) // one of the prefix was answered
			first.Status = 200
			r.Done(at(1), first, Answered)
			if !c.blind {
				tell(r, at(1.9), 1)
			}
			d := r.Route(at(2), chat(words(1, 4000), words(2, 8000)))
			known, u, rate := d.Choice.Matched, d.Choice.Load.Uncached, d.Choice.First.View(at(2)).Prefill
			if known < 50 || u < 7000 {
				t.Fatalf("%d blocks known, %v tokens to compute", known, u)
			}
			c.end(r, d, at(2+share*u*rate*1.0001))
			want := map[what]int{drained: known + int(share*u*1.0001/64), all: len(d.Prompt.Chain), old: known}[c.want]
			if c.want == drained && share == 1 {
				want = len(d.Prompt.Chain)
			}
			if n := d.Choice.First.Index.Match(d.Prompt.Chain); n != want {
				t.Errorf("%s, %v of its tokens drained: %d of %d blocks are held, %d were, want %d", c.name, share, n, len(d.Prompt.Chain), known, want)
			}
			if n := d.Choice.Second.Index.Match(d.Prompt.Chain); n != 0 {
				t.Errorf("%s: the second holds %d blocks", c.name, n)
			}
			idle(t, r, at(100))
		}
	}
}

// A stream that is left before its prompt has drained is no answer, by which a model would be known, and one after that is.
func TestLeftIsNoAnswer(t *testing.T) {
	for seconds, want := range map[float64]bool{0.001: false, 2: true} {
		r := newRouter(1, Default())
		tell(r, at(0), 1)
		d := r.Route(at(0), ask(1, 8000))
		d.Status, d.Events = 200, true
		r.Done(at(seconds), d, Answered)
		if got := r.pool.Text("m") != r.pool.Text("nobody's"); got != want {
			t.Errorf("left after %v s: an answer: %v", seconds, got)
		}
	}
}

// Where a retry took the lease to the second, what has drained there since is held there, and nothing on the first.
func TestLeftOnTheSecond(t *testing.T) {
	r := newRouter(2, Default())
	tell(r, at(0), 1)
	d := r.Route(at(0), ask(1, 8000))
	tell(r, at(1), 2)
	d.Status, d.Events = 200, true
	r.Serve(at(1), d, d.Choice.Second.Endpoint)
	half := d.Choice.Load.Uncached / 2
	r.Done(at(1+half*1.0001*d.Choice.Second.View(at(1)).Prefill), d, Answered)
	if n, want := d.Choice.Second.Index.Match(d.Prompt.Chain), int(half*1.0001/64); n != want || want < 50 {
		t.Errorf("the second holds %d blocks, want %d", n, want)
	}
	if n := d.Choice.First.Index.Match(d.Prompt.Chain); n != 0 {
		t.Errorf("the first holds %d blocks", n)
	}
	idle(t, r, at(10))
}

// A client that leaves while it is held, or after its wait in the instant before its blocks are entered, leaves nothing.
func TestLeftWhileHeld(t *testing.T) {
	r := newRouter(1, Default())
	var open []*Decision
	var d *Decision
	for i := 1; d == nil; i++ {
		if x := r.Route(at(0), ask(i, 4000)); x.State == Held {
			d = x
		} else {
			open = append(open, x)
		}
	}
	late := r.Route(at(0), ask(100, 4000))
	r.Done(at(0.5), d, Unanswered)
	if late.State != Held {
		t.Fatal("not held")
	}
	for _, x := range open {
		x.Status = 200
		r.Done(at(1), x, Answered)
	}
	if released, _, _ := r.releaseOne(at(1)); released != late {
		t.Fatal("not released")
	}
	r.Done(at(2), late, Unanswered)
	late.pin(late.lease.Replica, late.lease.Load)
	for _, x := range []*Decision{d, late} {
		if n := r.pool.Replicas[0].Index.Match(x.Prompt.Chain); n != 0 {
			t.Errorf("%d blocks are held", n)
		}
	}
	idle(t, r, at(2))
}

// A client that asks again and again, and leaves each time, gets further each time.
func TestAskedAgainItGoesOn(t *testing.T) {
	for name, status := range map[string]int{"no answer": 0, "a stream": 200} {
		r := newRouter(4, Default())
		tell(r, at(0), 1)
		now, held, where := 0.0, 0, ""
		for try := range 5 {
			tell(r, at(now), float64(2+try))
			d := r.Route(at(now), ask(1, 60_000))
			if where == "" {
				where = d.Choice.First.Endpoint
			}
			if d.Choice.First.Endpoint != where || d.Choice.Matched < held || try > 0 && d.Choice.Matched < held+50 {
				t.Errorf("%s, try %d: %d blocks known at %s, before %d at %s", name, try, d.Choice.Matched, d.Choice.First.Endpoint, held, where)
			}
			held = d.Choice.Matched
			now += 0.2
			end := Unanswered
			if d.Status, d.Events = status, status != 0; d.Events {
				end = Answered
			}
			r.Done(at(now), d, end)
		}
		idle(t, r, at(now))
	}
}

// A request for several answers is so many to its replica, with so many times the answer that is expected.
func TestSeveralAnswersAreCharged(t *testing.T) {
	for _, c := range []struct {
		path, members string
		answers       int
	}{
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"hi"}]`, 1},
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"hi"}],"n":8`, 8},
		{"/v1/completions", `"prompt":["a","b","c"],"n":2,"best_of":3`, 9},
	} {
		for tokens, each := range map[string]float64{"": 256, `,"max_tokens":10`: 10} {
			r := newRouter(1, Default())
			d := r.Route(at(0), &Request{Path: c.path, Body: []byte("{" + c.members + tokens + "}")})
			load := d.Choice.Load
			if load.Output != each*float64(c.answers) || load.Answers != float64(c.answers) {
				t.Errorf("%s%s: %+v", c.members, tokens, load)
			}
			pinned := int(load.Output/64) + c.answers
			if got := r.pool.Replicas[0].Index.Pinned(); got != pinned {
				t.Errorf("%s%s: %d blocks pinned, want %d", c.members, tokens, got, pinned)
			}
			r.Done(at(1), d, Unanswered)
			idle(t, r, at(1))
		}
	}
}
