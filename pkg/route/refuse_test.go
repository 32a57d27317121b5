package route

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/gate"
	"github.com/weirproxy/weir/pkg/pool"
)

// crowd sends requests of one size whose clients come back when they are told to, and returns how often those that were
// answered had to try, and the times for which the refused were told to wait.
func crowd(t *testing.T, n int, at0 func(i int) time.Duration) (tries float64, told []time.Duration) {
	r := newRouter(2, Default())
	p := newPlant(t, r, 5)
	for range 100 { // so that a rate is known
		p.send(sized(2000, "", ""), nil)
	}
	p.run(at(6))
	answered := 0
	var send func()
	send = func() {
		tries++
		p.send(sized(2000, "", ""), func(d *Decision) {
			if d.Outcome == Answered {
				answered++
				return
			}
			told = append(told, d.Retry)
			p.after(d.Retry, send)
		})
	}
	for i := range n {
		p.after(at0(i), send)
	}
	p.run(at(1500))
	if answered != n {
		t.Errorf("%d of %d are answered", answered, n)
	}
	slices.Sort(told)
	return tries / float64(n), told
}

// Who is refused is told a turn of his own, as fast as the pool drains: else all come back at once, and again.
func TestRefusedDoNotComeBackTogether(t *testing.T) {
	for _, c := range []struct {
		name string
		at   func(i int) time.Duration
	}{
		{"all at once", func(int) time.Duration { return 0 }},
		{"twice what fits", func(i int) time.Duration { return time.Duration(i) * 14 * time.Millisecond }},
	} {
		tries, told := crowd(t, 4000, c.at)
		if len(told) < 1000 {
			t.Fatalf("%s: %d were refused", c.name, len(told))
		}
		t.Logf("%s: %.1f tries each, told %v to %v, median %v", c.name, tries, told[0], told[len(told)-1], told[len(told)/2])
		same := 0
		for i := 1; i < len(told); i++ {
			if told[i] == told[i-1] {
				same++
			}
		}
		if tries > 4 || told[len(told)-1] > maxRetry || told[0] < minRetry || same > len(told)/10 {
			t.Errorf("%s: %.1f tries each, %d of %d told the same", c.name, tries, same, len(told))
		}
	}
}

// One that waits for its own replica while others pass it says nothing of how fast the pool drains: a burst that the other
// replica serves in time is not refused for the few that came before.
func TestRateIsNotArrivals(t *testing.T) {
	r := newRouter(2, Default())
	p := newPlant(t, r, 5)
	long := strings.Repeat(words(7, 1000)+" ", 60)
	warm := r.Route(p.now, chat(long, "what"))
	p.serve(warm, nil)
	p.stream(20, at(40), func() *Request { return sized(1000, "", "") }) // a miss of so many tokens is dear
	p.run(at(50))
	var busy pool.Lease
	r.pool.Charge(p.now, &busy, warm.Choice.First, pool.Load{Prompt: 350_000, Uncached: 350_000})
	p.after(9*time.Second, func() { busy.Release(p.now, true); p.release() })
	patient := r.Route(p.now, chat(long, "what"))
	if patient.State != Held {
		t.Fatalf("state %v", patient.State)
	}
	p.held[patient] = nil
	p.stream(4, at(58), func() *Request { return sized(1000, "", "") })
	p.run(at(58))
	ends := map[Outcome]int{}
	for range 300 {
		q := sized(1000, "", "")
		q.Class.HeaderDeadline = "10s"
		p.send(q, func(d *Decision) { ends[d.Outcome]++ })
	}
	p.run(at(120))
	if ends[Answered] != 300 {
		t.Errorf("of 300 that the pool has room for: %v", ends)
	}
}

// What is known of the rate is forgotten when the load that it was measured under has gone: a burst of later is not
// refused for it.
func TestRateIsForgotten(t *testing.T) {
	r := newRouter(1, Default())
	p := newPlant(t, r, 5)
	for range 100 {
		p.send(sized(10_000, "", ""), nil)
	}
	p.run(at(15))
	if rate := r.GateStats(p.now, 0).Classes[0].Rate; rate == 0 {
		t.Fatal("no rate is known under load")
	}
	p.run(at(120))
	for range 2000 {
		if d := r.Route(p.now, sized(2000, "", "")); d.Outcome == Shed {
			t.Fatalf("shed, predicted %v", d.Predicted())
		}
	}
}

// A class whose share is taken away while it is owed some goes before nobody any more (it starved the others until it was
// empty).
func TestShareTakenAway(t *testing.T) {
	p := loaded(t, 1, 1.1, 5, true)
	for s := 100.0; p.r.GateStats(p.now, 0).Classes[1].OwedTokens <= 0; s += 0.05 {
		p.run(at(s))
	}
	cfg := p.r.policy.Load().Config
	cfg.Classes = slices.Clone(cfg.Classes)
	cfg.Classes[1].SharePercent = 0
	p.r.Configure(p.now, cfg)
	p.release()
	clear(p.tokens)
	p.run(at(160))
	if p.tokens["bulk"] > 0.01*p.tokens["interactive"] || p.tokens["interactive"] < 1e6 {
		t.Errorf("without its share bulk gets %.0f tokens, interactive %.0f", p.tokens["bulk"], p.tokens["interactive"])
	}
}

// A class that becomes bulk while requests of it are held is bulk on the replicas too.
func TestMadeBulkWhileHeld(t *testing.T) {
	before, after := classes("a", "nightly"), classes("a", "nightly")
	after.Classes[1].Bulk = true
	r := newRouter(1, before)
	leases := fill(r, at(0))
	d := r.Route(at(0), of("nightly", 1))
	r.Configure(at(0), after)
	leases[0].Release(at(1), true)
	if r.Release(at(1)) != 1 || d.State != Picked || !d.lease.Load.Bulk || !r.pool.Replicas[0].HoldsBulk() {
		t.Errorf("state %v, load %+v", d.State, d.lease.Load)
	}
}

// A look at the gate changes no pick: what it laid into the replicas' queues is gone after it.
func TestLookingLeavesNothing(t *testing.T) {
	r := newRouter(2, Default())
	leases := fill(r, at(0))
	d := r.Route(at(0), ask(1, 5000))
	r.GateStats(at(0), 8)
	r.Done(at(0), d, LeftHeld)
	for _, l := range leases {
		l.Release(at(0), true)
	}
	none := Default()
	none.Queue = NoQueue
	r.Configure(at(0), none)
	picks := map[string]int{}
	for range 100 {
		d := r.Route(at(1), sized(100, "", ""))
		picks[d.Choice.First.Endpoint]++
		r.Done(at(1), d, Answered)
	}
	if len(picks) != 2 {
		t.Errorf("picks %v", picks)
	}
}

// Who was refused at once was not held for anything; a class that has drained is shown no more.
func TestStatsTellNoMoreThanIs(t *testing.T) {
	r := newRouter(1, holding(1))
	leases := fill(r, at(0))
	held, full := r.Route(at(0), of("bulk", 1)), r.Route(at(0), of("bulk", 2))
	if full.Outcome != Full || full.HeldFor() != gate.Nothing || held.HeldFor() == gate.Nothing {
		t.Errorf("refused %v for %q, held for %q", full.Outcome, full.HeldFor(), held.HeldFor())
	}
	r.Configure(at(0), classes("interactive"))
	if n := len(r.GateStats(at(0), 0).Classes); n != 2 {
		t.Errorf("%d classes while one drains", n)
	}
	leases[0].Release(at(0), true)
	r.Release(at(0))
	if n := len(r.GateStats(at(0), 0).Classes); n != 1 || held.State != Picked {
		t.Errorf("%d classes, state %v", n, held.State)
	}
}
