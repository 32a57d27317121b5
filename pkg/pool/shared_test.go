package pool

import (
	"slices"
	"testing"
)

// beside has half of what runs on every replica be another router's.
func beside(p *Pool, s float64) {
	for _, r := range p.Replicas {
		page := ran(s, float64(2*max(r.leases, 1)))
		p.Observe(page.At, r, page)
	}
}

// Two routers keep bulk to the same replicas, whatever order they list them in.
func TestBulkIsKeptToTheSameReplicas(t *testing.T) {
	names := []string{"10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000", "10.0.0.4:8000", "10.0.0.5:8000", "10.0.0.6:8000"}
	kept := func(names []string) (free []string) {
		p := New("p", names, plain)
		leases := make([]Lease, len(names))
		for i, r := range p.Replicas {
			p.Charge(at(0), &leases[i], r, Load{Prompt: 1000, Uncached: 1000, Output: 10})
		}
		if views, _ := p.Views(at(0)); slices.ContainsFunc(views, func(v View) bool { return v.NoBulk }) {
			t.Error("alone, a router keeps a replica free of bulk")
		}
		beside(p, 1)
		views, _ := p.Views(at(1))
		for i, v := range views {
			if v.NoBulk {
				free = append(free, names[i])
			}
		}
		if n := len(names) - p.BulkReplicas(at(1)); len(free) != n || n < 1 {
			t.Errorf("%d of %d are kept free, want %d and at least one", len(free), len(names), n)
		}
		slices.Sort(free)
		return free
	}
	other := slices.Clone(names)
	slices.Reverse(other)
	if a, b := kept(names), kept(other); !slices.Equal(a, b) {
		t.Errorf("one keeps %v free, the other %v", a, b)
	}
}

// The bulk of others is expected where this router's own goes and on one replica more, and its own stands for all.
func TestBulkOfOthersIsExpected(t *testing.T) {
	p := New("p", []string{"a", "b", "c", "d", "e", "f"}, plain)
	var talk, batch Lease
	p.Charge(at(0), &talk, p.Replicas[0], Load{Prompt: 10_000, Uncached: 10_000, Output: 10})
	beside(p, 1)
	beside(p, 1.1)
	at1 := slices.Index(p.bulkRanks, 0)
	before := p.Replicas[at1].View(at(2)).Backlog
	p.Charge(at(2), &batch, p.Replicas[at1], Load{Prompt: 3000, Uncached: 3000, Output: 10, Bulk: true})
	if got, want := p.Replicas[at1].View(at(2)).Backlog-before, 3000/p.Own(); got < 0.99*want || got > 1.01*want {
		t.Errorf("bulk of 3000 tokens adds %v, want %v for all routers", got, want)
	}
	k, views := p.BulkReplicas(at(2)), []View(nil)
	if views, _ = p.Views(at(2)); k < 1 || k > 4 {
		t.Fatalf("%d replicas for bulk leave nothing to tell apart", k)
	}
	for slot, rank := range p.bulkRanks {
		want := 0.0 // of the mean bulk request, 3,000 tokens of 100 us in ten seconds, what the k are busy with it
		if rank <= k {
			want = max(0.3*0.03/p.Own()/float64(k)-views[slot].Wait, 0)
		}
		if got := views[slot].Behind; got < want-1e-9 || got > want+1e-9 || rank == k && got == 0 {
			t.Errorf("replica %d of the order, of which %d take bulk: %v s behind, want %v", rank, k, got, want)
		}
	}
	batch.Release(at(3), true)
	if v := p.Replicas[at1].View(at(3)); v.Backlog > before {
		t.Errorf("backlog %v after the bulk ended, %v before", v.Backlog, before)
	}
}

// When the others have left, bulk goes by this router's own load at once, though Own remembers them for seconds.
func TestBulkForgetsOthersAtOnce(t *testing.T) {
	p := New("p", []string{"a", "b", "c", "d", "e", "f"}, plain)
	p.interactive.add(at(0), bulkMemory) // one replica's worth
	most := p.BulkReplicas(at(0))
	var leases [6]Lease
	for i, r := range p.Replicas {
		p.Charge(at(0), &leases[i], r, Load{Prompt: 1, Uncached: 1, Output: 1})
	}
	for i := range 10 {
		beside(p, float64(i)/100)
	}
	if k := p.BulkReplicas(at(0.1)); k >= most {
		t.Fatalf("beside others %d replicas take bulk, alone %d: nothing to tell apart", k, most)
	}
	for _, r := range p.Replicas {
		page := ran(0.2, float64(r.leases))
		p.Observe(page.At, r, page)
	}
	if k := p.BulkReplicas(at(0.2)); k != most || p.Own() > 0.9 {
		t.Errorf("the others have left, own is %.2f: %d replicas take bulk, want %d", p.Own(), k, most)
	}
	if wait := p.BulkGrows(at(0.2), most); wait <= 0 || p.BulkReplicas(at(0.2).Add(wait+1e6)) <= most {
		t.Errorf("after %v %d replicas take bulk, want more than %d", wait, p.BulkReplicas(at(0.2).Add(wait+1e6)), most)
	}
}
