package pool

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Bulk whose prompts are through is no bulk any more: what rounding leaves of a lease, when nothing is ahead, holds no place
// in the backlog. Else it counts against k, and the gate asks to be called again at once until its answer ends.
func TestRoundingHoldsNoBulk(t *testing.T) {
	cfg, _ := Default("32B")
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := New("p", []string{"a:1", "b:1"}, cfg)
		r, now := p.Replicas[0], at(0)
		for range 3 {
			u := float64(1 + rng.IntN(4000))
			p.Charge(now, &Lease{}, r, Load{Prompt: u, Uncached: u, Output: 300, Bulk: true})
			now = now.Add(time.Duration(rng.Int64N(int64(50 * time.Millisecond))))
			r.advance(now)
		}
		r.progress(now.Add(2 * time.Second))
		now = now.Add(4 * time.Second)
		r.progress(now)
		if n := p.BulkElsewhere(now, p.Replicas[1]); n != 0 || r.backlog != 0 || r.oldest != nil {
			t.Fatalf("seed %d: %d replicas hold bulk, %v tokens are ahead", seed, n, r.backlog)
		}
	}
}

// What a replica that fails holds of bulk keeps nobody waiting, and where all that take bulk fail the others take it.
func TestBulkOfTheDead(t *testing.T) {
	p := New("p", []string{"a", "b", "c"}, plain)
	var talk, batch Lease
	p.Charge(at(0), &talk, p.Replicas[0], Load{Prompt: 10_000, Uncached: 10_000, Output: 10})
	beside(p, 1)
	beside(p, 1.1)
	k, first := p.BulkReplicas(at(2)), 0
	for slot, rank := range p.bulkRanks {
		if rank == 0 {
			first = slot
		}
	}
	if k != 1 {
		t.Fatalf("%d replicas take bulk, want one", k)
	}
	p.Charge(at(2), &batch, p.Replicas[first], Load{Prompt: 3000, Uncached: 3000, Output: 10, Bulk: true})
	kept := func() (n int) {
		views, _ := p.Views(at(2))
		for _, v := range views {
			if v.NoBulk {
				n++
			}
		}
		return n
	}
	if n := p.BulkElsewhere(at(2), nil); n != 1 || kept() != 2 {
		t.Errorf("%d replicas hold bulk, and %d are kept free of it, want 1 and 2", n, kept())
	}
	p.Replicas[first].takeOut(at(2))
	if n := p.BulkElsewhere(at(2), nil); n != 0 || kept() != 0 {
		t.Errorf("the only one that takes bulk fails: %d hold bulk, and %d are kept free of it, want none", n, kept())
	}
}

// Others that have left are not taken to send bulk, though Own remembers them.
func TestOthersLeave(t *testing.T) {
	p := New("p", []string{"a", "b", "c", "d"}, plain)
	for s := range 20 {
		beside(p, float64(s))
	}
	if p.alone() {
		t.Fatal("alone beside others")
	}
	for _, r := range p.Replicas {
		page := ran(20, 0)
		p.Observe(page.At, r, page)
	}
	if p.Own() > 0.9 || !p.alone() {
		t.Errorf("own %v, alone %v a scrape after the others left", p.Own(), p.alone())
	}
	page := ran(21, 3)
	if p.Observe(page.At, p.Replicas[0], page); p.alone() {
		t.Error("alone as they come back")
	}
}
