package step

import (
	"testing"
	"time"
)

// TestCached: only full blocks hit, and the last token is always computed.
func TestCached(t *testing.T) {
	for _, c := range []struct{ first, again, cached int }{
		{160, 160, 144}, // the tenth block holds the last token
		{160, 161, 160},
		{161, 161, 160},
		{160, 175, 160},
		{160, 176, 160}, // the eleventh block is the answer's and has another text
		{15, 15, 0},
		{16, 17, 16},
	} {
		r := mustNew(t, mustLookup(t, "8B"))
		a := &Seq{Hashes: hashes(1, c.first/BlockTokens), Prompt: c.first, Output: 40}
		submit(t, r, 0, a)
		drain(r)
		at := a.Last
		b := &Seq{Hashes: hashes(1, c.again/BlockTokens), Prompt: c.again, Output: 1}
		submit(t, r, at, b)
		drain(r)
		want := at + 15_000_000 + 6_904_400 + time.Duration(c.again-c.cached)*27_800
		if b.Cached != c.cached || b.First != want {
			t.Errorf("%d then %d: cached %d first %d, want %d %d", c.first, c.again, b.Cached, b.First, c.cached, want)
		}
	}
}

// TestAnswerIsReusedByContinuation: a turn that repeats the answer finds its blocks when they were named.
// An answer's last token is never computed, so the block that it would fill is not there.
func TestAnswerIsReusedByContinuation(t *testing.T) {
	for _, c := range []struct{ output, cached int }{{32, 48}, {33, 64}} {
		r := mustNew(t, mustLookup(t, "8B"))
		a := &Seq{Hashes: hashes(1, 6), Prompt: 32, Output: c.output}
		submit(t, r, 0, a)
		drain(r)
		b := &Seq{Hashes: hashes(1, 6), Prompt: 100, Output: 1}
		submit(t, r, a.Last, b)
		drain(r)
		if b.Cached != c.cached {
			t.Errorf("answer of %d: cached %d, want %d", c.output, b.Cached, c.cached)
		}
	}
}

func TestLRU(t *testing.T) {
	p := mustLookup(t, "8B")
	p.KVTokens = 10 * BlockTokens
	r := mustNew(t, p)
	run := func(text uint64, tokens int) int {
		s := &Seq{Hashes: hashes(text, tokens/BlockTokens), Prompt: tokens, Output: 1}
		submit(t, r, r.end, s)
		drain(r)
		return s.Cached
	}
	run(1, 64) // 4 blocks
	run(2, 64) // 4 blocks
	run(1, 64) // its first 3 are held again, so all of 2 is older now
	run(3, 80) // 5 blocks: one never used, the end of 1 that was not held again, and the last 3 of 2
	if got := run(2, 64); got != 16 {
		t.Errorf("oldest text: %d cached, want its first block, 16", got)
	}
	// That took 3 blocks more: the copy of the end of 1, and the third and second block of 1.
	if got := run(1, 64); got != 16 {
		t.Errorf("older text: %d cached, want its first block, 16", got)
	}
}
