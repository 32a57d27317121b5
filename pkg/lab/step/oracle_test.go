package step

import (
	"math/rand/v2"
	"testing"
	"time"
)

// check holds the cache to its own rules: references are what the running sequences hold, the free list is
// the blocks without one, and the map names the blocks that carry a hash.
func (r *Replica) check(t *testing.T) {
	t.Helper()
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	refs := make([]int32, len(r.cache.blocks))
	for _, s := range r.running {
		for _, id := range s.blocks {
			refs[id]++
		}
	}
	named, free := 0, 0
	for id := 1; id < len(refs); id++ {
		b := r.cache.blocks[id]
		if b.refs != refs[id] {
			t.Fatalf("block %d has %d references, sequences hold %d", id, b.refs, refs[id])
		}
		if b.hash != 0 {
			named++
			if r.cache.byHash.find(b.hash) != int32(id) {
				t.Fatalf("block %d is not found by its hash", id)
			}
		}
	}
	for id := r.cache.blocks[0].next; id != 0; id = r.cache.blocks[id].next {
		free++
		if refs[id] != 0 {
			t.Fatalf("block %d is held and free", id)
		}
	}
	if named != r.cache.byHash.used() || free != r.cache.free || free != len(refs)-1-r.Stats().KVUsed {
		t.Fatalf("named %d of %d, free %d of %d", named, r.cache.byHash.used(), free, r.cache.free)
	}
}

// TestAgainstNaive runs random loads through both replicas and compares every gauge after every event and
// every time at the end.
func TestAgainstNaive(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 30
	}
	var total Stats
	for seed := range seeds {
		st := compare(t, rand.New(rand.NewPCG(seed, 7)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		total.Preemptions += st.Preemptions
		total.Hits += st.Hits
		total.Aborted += st.Aborted
		total.Finished += st.Finished
	}
	// The loads must reach what they are there to compare.
	if total.Preemptions < int64(seeds) || total.Hits < 100*int64(seeds) || total.Aborted < int64(seeds) || total.Finished < 20*int64(seeds) {
		t.Errorf("the loads are too tame: %+v", total)
	}
}

func compare(t *testing.T, rng *rand.Rand) Stats {
	blocks, seats := 20+rng.IntN(60), 1+rng.IntN(8)
	budget := seats + rng.IntN(300)
	p := Profile{Base: 6900 * time.Microsecond, PerSeq: 4400, PerContext: 76, PerPrefill: 27800, API: time.Duration(rng.IntN(2)) * 15 * time.Millisecond,
		KVTokens: 16*blocks + rng.IntN(16), MaxBatch: budget, MaxSeqs: seats}
	r := mustNew(t, p)
	n := &naive{budget: budget, seats: seats, until: -1, c0: 6.9, a: 0.0044, b: 0.000076, p: 0.0278}
	for i := range blocks {
		n.pages = append(n.pages, &page{freed: i - blocks})
	}
	var seqs []*Seq
	var clients []*client
	now := time.Duration(0)
	for range 40 {
		now += time.Duration(rng.ExpFloat64() * float64(30*time.Millisecond))
		if rng.IntN(4) == 0 {
			if next, ok := r.Next(); ok && next > now {
				now = next // arrivals at the very end of a step
			}
		}
		r.Advance(now)
		n.to(int64(now))
		same(t, r, n)
		if k := rng.IntN(8); k == 0 && len(seqs) > 0 {
			i := rng.IntN(len(seqs))
			r.Abort(seqs[i])
			n.abort(clients[i])
			same(t, r, n)
			continue
		}
		in, out := 1+rng.IntN(16*blocks*2/3), 1+rng.IntN(16*blocks/4)
		text := hashes(rng.Uint64N(4), min(in/16, rng.IntN(blocks)))
		for i := len(text); i < (in+rng.IntN(out+1))/16; i++ {
			text = append(text, rng.Uint64N(3)*rng.Uint64()) // own text, a third of it unnamed
		}
		s := &Seq{Hashes: text, Prompt: in, Output: out}
		submit(t, r, now, s)
		c := &client{text: text, in: in, out: out, enters: int64(now + p.API)}
		seqs, clients, n.coming = append(seqs, s), append(clients, c), append(n.coming, c)
	}
	for next, ok := r.Next(); ok; next, ok = r.Next() {
		r.Advance(next)
		n.to(int64(next))
		same(t, r, n)
	}
	st := r.Stats()
	for i, s := range seqs {
		c := clients[i]
		if s.Generated != c.got || s.Cached != c.cached || s.Preemptions != c.preempted || s.First != time.Duration(c.first) || s.Admitted != time.Duration(c.admit) ||
			s.Generated == s.Output && s.Last != time.Duration(c.last) {
			t.Errorf("sequence %d: %+v\nwant %+v", i, s, c)
		}
	}
	if st.KVUsed != 0 || st.Running+st.Waiting+st.Arriving != 0 || st.Finished+st.Aborted != int64(len(seqs)) {
		t.Errorf("not idle at the end: %+v", st)
	}
	if st.Preemptions == 0 && st.Aborted == 0 && (st.Prompt != st.Prefilled+st.Hits || st.Prompt != st.Queries || st.Cached != st.Hits) {
		t.Errorf("tokens in are not tokens computed and cached: %+v", st)
	}
	return st
}

func same(t *testing.T, r *Replica, n *naive) {
	t.Helper()
	r.check(t)
	st := r.Stats()
	if st.Running != len(n.batch) || st.Waiting != len(n.line) || st.Arriving != len(n.coming) ||
		st.KVUsed != len(n.pages)-len(n.freePages()) || st.Preemptions != int64(n.preempted) || st.Prefilled != int64(n.computed) {
		t.Fatalf("at %d: %+v\nwant running %d waiting %d arriving %d used %d preemptions %d computed %d", n.clock, st,
			len(n.batch), len(n.line), len(n.coming), len(n.pages)-len(n.freePages()), n.preempted, n.computed)
	}
}
