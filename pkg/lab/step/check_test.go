package step

import (
	"strings"
	"testing"
	"time"
)

// TestCheckFinds: each law is seen to be broken.
func TestCheckFinds(t *testing.T) {
	for _, c := range []struct {
		says  string
		spoil func(*Replica)
	}{
		{"tokens came in", func(r *Replica) { r.stats.Evicted++ }},
		{"tokens came in", func(r *Replica) { r.running[0].computed++ }},
		{"users and has", func(r *Replica) { r.cache.blocks[r.running[0].blocks[0]].refs++ }},
		{"blocks are free", func(r *Replica) { r.cache.free-- }},
	} {
		r := mustNew(t, mustLookup(t, "8B"))
		submit(t, r, 0, &Seq{Hashes: hashes(1, 20), Prompt: 320, Output: 50})
		r.Advance(200 * time.Millisecond)
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		c.spoil(r)
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v", c.says, err)
		}
	}
}

// TestMatchIsWhatAnAdmissionFinds, and reads only.
func TestMatchIsWhatAnAdmissionFinds(t *testing.T) {
	r := mustNew(t, mustLookup(t, "8B"))
	submit(t, r, 0, &Seq{Hashes: hashes(1, 10), Prompt: 160, Output: 1})
	drain(r)
	for _, prompt := range []int{15, 16, 17, 100, 160, 161, 400} {
		s := &Seq{Hashes: hashes(1, prompt/BlockTokens), Prompt: prompt, Output: 1}
		match := r.Match(s)
		if again := r.Match(s); again != match {
			t.Errorf("prompt of %d: %d, then %d", prompt, match, again)
		}
		submit(t, r, r.end, s)
		drain(r)
		if s.Cached != match {
			t.Errorf("prompt of %d: %d matched, %d found", prompt, match, s.Cached)
		}
	}
}

// TestLeft counts down to 0 while a prompt is computed, and is one token in a decode.
func TestLeft(t *testing.T) {
	r := mustNew(t, mustLookup(t, "8B"))
	s := &Seq{Prompt: 20_000, Output: 3}
	if _, ok := s.Left(); ok {
		t.Error("a sequence runs that was never submitted")
	}
	submit(t, r, 0, s)
	var seen []int
	for now, ok := r.Next(); ok; now, ok = r.Next() {
		r.Advance(now)
		if left, ok := s.Left(); ok {
			seen = append(seen, left)
		}
	}
	want := []int{20_000, 20_000 - 8192, 20_000 - 2*8192, 1, 1}
	if len(seen) != len(want) {
		t.Fatalf("left %v, want %v", seen, want)
	}
	for i := range want {
		if seen[i] != want[i] {
			t.Errorf("left %v, want %v", seen, want)
		}
	}
}

// TestBlockedHeadIsForgotten: what the last look found is not taken for what a sequence finds that left the queue and
// came back.
func TestBlockedHeadIsForgotten(t *testing.T) {
	p := mustLookup(t, "8B")
	p.KVTokens = 14 * BlockTokens
	r := mustNew(t, p)
	a := &Seq{Hashes: hashes(1, 10), Prompt: 10*BlockTokens + 1, Output: 40} // 11 to 13 blocks
	submit(t, r, 0, a)
	r.Advance(30 * time.Millisecond)
	b := &Seq{Hashes: hashes(1, 10), Prompt: 14*BlockTokens - 1, Output: 1} // 4 blocks beside the 10 that a holds; 3 are free
	submit(t, r, 30*time.Millisecond, b)
	r.Advance(80 * time.Millisecond)
	if r.blocked != b || len(b.blocks) != 10 {
		t.Fatalf("blocked %p with %d blocks, want %p with 10", r.blocked, len(b.blocks), b)
	}
	r.Abort(b)
	b.Prompt = 10*BlockTokens + 2
	submit(t, r, 80*time.Millisecond, b)
	r.Advance(120 * time.Millisecond)
	if b.Cached != 10*BlockTokens || b.Generated != 1 {
		t.Errorf("%d tokens cached, %d generated", b.Cached, b.Generated)
	}
}
