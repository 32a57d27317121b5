package pool

import "testing"

// TestSilentRequestsTeachNoLength: of a request that asks for no answer the books have an answer of no tokens, as its
// replica counts one, and no length is learned from it.
func TestSilentRequestsTeachNoLength(t *testing.T) {
	for output, want := range map[float64]int{0: 0, 100: 1} {
		p := New("p", []string{"a"}, plain)
		r := p.Replicas[0]
		var l Lease
		p.Charge(at(0), &l, r, Load{Prompt: 300, Uncached: 300, Output: output, Prompts: 3, Answers: 3})
		p.End(at(1), &l, Kind{Model: "m"}, true, false)
		l.Release(at(1), true)
		if b := &r.audit.sent; b.answers != 3 || b.output != output || (b.guess > 0) != (output > 0) || b.requests != 3 {
			t.Errorf("output %v: books %+v", output, *b)
		}
		if n := len(p.outputs.order); n != want {
			t.Errorf("output %v: %d kinds of answers are learned of", output, n)
		}
	}
}

// TestAsideRequestsTeachNothing: what a replica answers without its engine takes a lease, and is in no book and no mean of work.
func TestAsideRequestsTeachNothing(t *testing.T) {
	p := New("p", []string{"a"}, plain)
	r := p.Replicas[0]
	one := func(q Load, answered, failed bool) {
		var l Lease
		p.Charge(at(0), &l, r, q)
		if r.Leases() != 1 {
			t.Errorf("%d leases", r.Leases())
		}
		p.End(at(1), &l, Kind{Model: "m"}, answered, failed)
		l.Release(at(1), answered)
	}
	one(Load{Prompt: 900, Uncached: 900, Output: 10}, true, false)
	books, work, interactive := r.audit.sent, p.Work(), p.InteractiveWork()
	for range 100 {
		one(Load{Uncached: 1, Aside: true}, true, false)
		one(Load{Uncached: 1, Aside: true}, false, true)
	}
	if r.audit.sent != books || p.Work() != work || p.InteractiveWork() != interactive || len(p.outputs.order) != 1 || r.Leases() != 0 {
		t.Errorf("books %+v, were %+v; work %v, was %v", r.audit.sent, books, p.Work(), work)
	}
}
