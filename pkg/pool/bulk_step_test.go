package pool

import "testing"

// While bulk comes, an interactive request takes a step beside its tokens, 10 ms or 50 tokens, unless it shares that of one
// that waits; bulk does not, and nobody does without bulk.
func TestStepBesideBulk(t *testing.T) {
	p := newBulkPool(2, plain)
	charge := func(now float64, r int, tokens float64, bulk bool) *Lease {
		l := &Lease{}
		p.Charge(at(now), l, p.Replicas[r], Load{Prompt: tokens, Uncached: tokens, Bulk: bulk})
		return l
	}
	backlog := func(now float64, r int, want float64) {
		t.Helper()
		if got := p.Replicas[r].View(at(now)).Backlog; !near(got, want) {
			t.Errorf("at %v s replica %d has a backlog of %v, want %v", now, r, got, want)
		}
	}
	l := charge(0, 0, 1000, false)
	backlog(0, 0, 1000)
	l.Release(at(0.5), true)
	charge(0, 1, 3000, true) // 0.6 s
	backlog(0, 1, 3000)
	charge(0, 1, 1000, false)
	backlog(0, 1, 4050)
	charge(0, 1, 1000, false) // shares the step of the one before
	backlog(0, 1, 5050)
	charge(0.7, 1, 1000, false) // the second is being computed, and the third waits
	backlog(0.7, 1, 2550)
	for _, c := range []struct{ now, want float64 }{
		{1, 1050}, {10.9, 1050}, {11.1, 1000}, // 0.03 s of bulk in a second count until a mean of 0.01
	} {
		l := charge(c.now, 0, 1000, false)
		backlog(c.now, 0, c.want)
		l.Release(at(c.now+0.1), true)
		backlog(c.now+0.1, 0, 0)
	}
}

// What delays an interactive request is not the wait on replicas that hold bulk.
func TestDelayOfBulk(t *testing.T) {
	p := newBulkPool(2, plain)
	charge := func(now float64, r int, tokens float64, bulk bool) {
		p.Charge(at(now), &Lease{}, p.Replicas[r], Load{Prompt: tokens, Uncached: tokens, Bulk: bulk})
	}
	wants := func(now, all, interactive float64) {
		t.Helper()
		if _, got := p.Views(at(now)); !near(got.All, all) || !near(got.Interactive, interactive) {
			t.Errorf("at %v s %+v, want %v and %v", now, got, all, interactive)
		}
	}
	wants(0, 0, 0)
	charge(0, 0, 1000, false)
	wants(0, 0.1, 0.1)
	charge(0, 1, 5000, true)
	wants(0, 0.6, 0.1)
	charge(0, 0, 2000, true)
	wants(0, 0.8, 0)
	charge(0, 0, 1000, false)
	wants(0.65, 0.5*(0.15+0.35), 0.5*0.15) // its bulk is through, without an event since; the other's is not
	if p.Work() <= p.InteractiveWork() || !near(p.InteractiveWork(), 0.1) {
		t.Errorf("work %v, of interactive ones %v", p.Work(), p.InteractiveWork())
	}
}
