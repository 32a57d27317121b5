package route

import "testing"

func TestServe(t *testing.T) {
	for _, c := range []struct {
		name     string
		endpoint func(d *Decision) string
		served   Served
		moves    bool
	}{
		{"first", func(d *Decision) string { return d.Choice.First.Endpoint }, First, false},
		{"second", func(d *Decision) string { return d.Choice.Second.Endpoint }, Second, true},
		{"another of the pool", func(d *Decision) string {
			for i := range 4 {
				if e := endpoint(i); e != d.Choice.First.Endpoint && e != d.Choice.Second.Endpoint {
					return e
				}
			}
			return ""
		}, Other, true},
		{"a stranger", func(*Decision) string { return "192.0.2.1:80" }, Other, false},
		{"nobody", func(*Decision) string { return "" }, Unknown, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRouter(4, Default())
			d := r.Route(at(0), ask(1, 2000))
			e := c.endpoint(d)
			r.Serve(at(0.01), d, e)
			r.Serve(at(0.02), d, e) // told twice, it moves once
			if d.Served != c.served {
				t.Errorf("served %v, want %v", d.Served, c.served)
			}
			want := d.Choice.First
			if c.moves {
				want = r.pool.Replica(e)
			}
			if s := want.Stats(at(0.02)); c.moves && s.BacklogTokens > float64(d.Prompt.Tokens)-300 {
				t.Errorf("backlog %v of %d tokens 10 ms after the move: it moved again", s.BacklogTokens, d.Prompt.Tokens)
			}
			for _, rep := range r.pool.Replicas {
				s := rep.Stats(at(0.02))
				if on := rep == want; (s.Leases == 1) != on || (s.IndexPinned >= 2000/64) != on || !on && s.BacklogTokens != 0 {
					t.Errorf("%s, wanted on %s: %+v", rep.Endpoint, want.Endpoint, s)
				}
			}
			r.Done(at(1), d, Answered)
			idle(t, r, at(1))
			r.Serve(at(2), d, d.Choice.Second.Endpoint) // after the end it moves nothing
			idle(t, r, at(2))
		})
	}
}

func TestServeOfUnpicked(t *testing.T) {
	r := newRouter(2, Default())
	fill(r, at(0))
	held := r.Route(at(0), ask(1, 10))
	for _, d := range []*Decision{held, Unrouted("llm", at(0), NoPool)} {
		if r.Serve(at(0), d, endpoint(0)); d.Served != Unknown {
			t.Errorf("served %v of state %v", d.Served, d.State)
		}
	}
}
