package route

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// What of a prompt a replica is thought to hold when its request has ended in one of these ways.
func TestIndexHoldsWhatWasComputed(t *testing.T) {
	answer := func(status int) func(r *Router, d *Decision) {
		return func(r *Router, d *Decision) {
			d.Status = status
			r.Serve(at(0.1), d, d.Choice.First.Endpoint)
			r.Done(at(1), d, Answered)
		}
	}
	end := func(o Outcome) func(r *Router, d *Decision) {
		return func(r *Router, d *Decision) { r.Done(at(1), d, o) }
	}
	for _, c := range []struct {
		name          string
		end           func(r *Router, d *Decision)
		first, second bool // hold it afterwards
	}{
		{"answered", answer(200), true, false},
		{"created", answer(201), true, false},
		{"redirected", answer(302), false, false},
		{"refused: a bad request", answer(400), false, false},
		{"refused: too long a prompt", answer(413), false, false},
		{"refused: too many", answer(429), false, false},
		{"failed", answer(500), false, false},
		{"unavailable", answer(503), false, false},
		{"the client left in the midst of the answer", end(Unanswered), true, false},
		{"a fault of weir's", end(Failed), false, false},
		{"the second served", func(r *Router, d *Decision) {
			d.Status = 200
			r.Serve(at(0.1), d, d.Choice.Second.Endpoint)
			r.Done(at(1), d, Answered)
		}, false, true},
		{"the second refused", func(r *Router, d *Decision) {
			d.Status = 400
			r.Serve(at(0.1), d, d.Choice.Second.Endpoint)
			r.Done(at(1), d, Answered)
		}, false, false},
		{"a status that came after the end", func(r *Router, d *Decision) {
			r.Done(at(0), d, Unanswered)
			d.Status = 200
			r.Serve(at(2), d, d.Choice.First.Endpoint)
			r.Done(at(3), d, Answered)
		}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRouter(3, Default())
			d := r.Route(at(0), ask(1, 2000))
			if n := d.Choice.First.Index.Match(d.Prompt.Chain); n != len(d.Prompt.Chain) {
				t.Fatalf("%d of %d blocks are there while the request lives", n, len(d.Prompt.Chain))
			}
			c.end(r, d)
			idle(t, r, at(3))
			for _, rep := range r.pool.Replicas {
				want := 0
				if c.first && rep == d.Choice.First || c.second && rep == d.Choice.Second {
					want = len(d.Prompt.Chain)
				}
				if n := rep.Index.Match(d.Prompt.Chain); n != want {
					t.Errorf("%s holds %d blocks, want %d", rep.Endpoint, n, want)
				}
			}
		})
	}
}

// A refused request takes nothing away from those that were answered with its prefix, before it or beside it.
func TestRefusalKeepsWhatOthersComputed(t *testing.T) {
	r := newRouter(2, Default())
	system := words(1, 2000)
	first := r.Route(at(0), chat(system, "one"))
	beside := r.Route(at(0.1), chat(system, "another question, "+words(2, 300)))
	if beside.Choice.First != first.Choice.First {
		t.Fatal("the second does not follow the first's prefix")
	}
	at1 := first.Choice.First
	first.Status, beside.Status = 200, 400
	r.Done(at(1), beside, Answered)
	r.Done(at(2), first, Answered)
	shared := 2000/64 - 1
	if n := at1.Index.Match(first.Prompt.Chain); n != len(first.Prompt.Chain) {
		t.Errorf("%d of the answered one's %d blocks are held", n, len(first.Prompt.Chain))
	}
	if n := at1.Index.Match(beside.Prompt.Chain); n < shared || n > shared+2 {
		t.Errorf("%d of the refused one's %d blocks are held, want the %d that both have", n, len(beside.Prompt.Chain), shared)
	}
}

// However requests end, each replica's index holds only blocks that a request answered there has used, or that had drained of
// one that was left, and those of live ones.
func TestIndexIsTrueUnderRandomEnds(t *testing.T) {
	type key struct {
		slot int
		hash uint64
	}
	unanswered, parts := 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 31))
		r := newSmall(3, 20)
		computed := map[key]bool{}
		var open []*Decision
		var seen []*Decision
		now := epoch
		done := func(d *Decision, end Outcome) {
			if at := r.pool.Replica(heldBy(d)); at != nil {
				n := int(d.lease.Computed(now)/64 + 0.01)
				if end == Answered && d.Status == 200 {
					n = len(d.Prompt.Chain)
				} else if end == Answered {
					n = 0
				}
				if n > d.Choice.Matched && n < len(d.Prompt.Chain) {
					parts++
				}
				for _, h := range d.Prompt.Chain[:n] {
					computed[key{at.Slot, uint64(h)}] = true
				}
			}
			r.Done(now, d, end)
		}
		for range 120 {
			now = now.Add(time.Duration(rng.IntN(3e8)))
			if rng.IntN(2) == 0 {
				d := r.Route(now, chat(words(rng.IntN(3), 64*(1+rng.IntN(3))), words(100+rng.IntN(5), 64*rng.IntN(4))))
				open, seen = append(open, d), append(seen, d)
			} else if len(open) > 0 {
				i := rng.IntN(len(open))
				d := open[i]
				open = slices.Delete(open, i, i+1)
				end := Unanswered
				if d.State == Picked && rng.IntN(3) > 0 {
					end, d.Status = Answered, []int{200, 200, 400, 503}[rng.IntN(4)]
					r.Serve(now, d, endpoint(rng.IntN(3)))
				}
				done(d, end)
			}
			r.Release(now)
		}
		for _, d := range open {
			done(d, Unanswered)
		}
		idle(t, r, now)
		for _, d := range seen {
			for _, rep := range r.pool.Replicas {
				for _, h := range d.Prompt.Chain[:rep.Index.Match(d.Prompt.Chain)] {
					if !computed[key{rep.Slot, uint64(h)}] {
						t.Fatalf("seed %d: %s holds a block that was never computed there", seed, rep.Endpoint)
					}
				}
			}
			if d.Status != 200 {
				unanswered++
			}
		}
	}
	if unanswered < 500 || parts < 20 {
		t.Errorf("%d requests were not answered, %d computed in part: the histories are too tame", unanswered, parts)
	}
}

// heldBy is the endpoint that a picked request is charged to; empty for none.
func heldBy(d *Decision) string {
	if d.State != Picked {
		return ""
	}
	return d.lease.Replica.Endpoint
}
