package prefix

import (
	"math/rand/v2"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
)

// request is one that pins a chain, and how many of its blocks are computed when it ends.
type request struct {
	c        chain.Chain
	computed int
}

// TestOnlyWhatWasComputedStays: what is held in the end is what was computed for some request, whatever order they
// come and go in.
func TestOnlyWhatWasComputedStays(t *testing.T) {
	long, short, other := chain.Chain{1, 2, 3, 4}, chain.Chain{1, 2}, chain.Chain{1, 2, 9}
	for _, c := range []struct {
		name     string
		requests []request // pinned in this order
		ends     []int     // unpinned in this order
		long     int       // blocks of it held in the end
		other    int
		used     int // with those of answers
	}{
		{"one that was answered", []request{{long, All}}, []int{0}, 4, 2, 5},
		{"one that was not", []request{{long, 0}}, []int{0}, 0, 0, 0},
		{"not, after one that was", []request{{short, All}, {long, 0}}, []int{0, 1}, 2, 2, 3},
		{"not, before the end of one that was", []request{{long, 0}, {short, All}}, []int{0, 1}, 2, 2, 3},
		{"not, beside one that was and ends first", []request{{long, 0}, {short, All}}, []int{1, 0}, 2, 2, 3},
		{"a branch that was not", []request{{long, All}, {other, 0}}, []int{1, 0}, 4, 2, 5},
		{"two that were not", []request{{long, 0}, {other, 0}}, []int{1, 0}, 0, 0, 0},
		{"a part of it", []request{{long, 3}}, []int{0}, 3, 2, 3},
		{"a part, after one of which less was", []request{{short, 1}, {long, 3}}, []int{0, 1}, 3, 2, 3},
		{"a part, after one of which more was", []request{{long, 3}, {other, 1}}, []int{0, 1}, 3, 2, 3},
		{"a part, beside one that was not and ends last", []request{{long, 3}, {long, 0}}, []int{0, 1}, 3, 2, 3},
		{"all but its answer", []request{{long, 4}}, []int{0}, 4, 2, 4},
		{"and its answer", []request{{long, 5}}, []int{0}, 4, 2, 5},
		{"the longer one was", []request{{short, 0}, {long, All}}, []int{0, 1}, 4, 2, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := NewIndex(100)
			var pins []Pins
			for _, r := range c.requests {
				pins = append(pins, x.Pin(r.c, 1))
				if n := x.Match(r.c); n != len(r.c) {
					t.Errorf("a live request's own blocks: %d of %d match", n, len(r.c))
				}
			}
			for _, i := range c.ends {
				x.Unpin(c.requests[i].c, pins[i], c.requests[i].computed)
			}
			if got := x.Match(long); got != c.long {
				t.Errorf("%d blocks of %v held, want %d", got, long, c.long)
			}
			if got := x.Match(other); got != c.other {
				t.Errorf("%d blocks of %v held, want %d", got, other, c.other)
			}
			if x.Pinned() != 0 || x.usedLocked() != c.used {
				t.Errorf("%d pinned, %d used, want none and %d", x.Pinned(), x.usedLocked(), c.used)
			}
		})
	}
}

// TestUnansweredEvictsWhatItMust: a request takes its room while it lives, answered or not; afterwards it leaves
// free room, and not its blocks.
func TestUnansweredEvictsWhatItMust(t *testing.T) {
	x := NewIndex(4)
	old := chain.Chain{1, 2, 3}
	x.Unpin(old, x.Pin(old, 0), All)
	failed := chain.Chain{7, 8, 9}
	p := x.Pin(failed, 0)
	if n := x.Match(old); n != 1 {
		t.Errorf("%d old blocks beside three new ones in four", n)
	}
	x.Unpin(failed, p, 0)
	if n := x.Match(failed); n != 0 || x.Match(old) != 1 || x.usedLocked() != 1 {
		t.Errorf("%d of the failed one's blocks held, %d old ones, %d used", n, x.Match(old), x.usedLocked())
	}
}

// TestVersionTellsOfWhatIsDropped: a held request that matched the blocks of a live one looks again when they go.
func TestVersionTellsOfWhatIsDropped(t *testing.T) {
	x := NewIndex(10)
	c := chain.Chain{1, 2}
	p := x.Pin(c, 0)
	before := x.Version()
	x.Unpin(c, p, 0)
	if x.Version() == before || x.Match(c) != 0 {
		t.Errorf("version %d, then %d; %d blocks held", before, x.Version(), x.Match(c))
	}
}

// TestHeldBlocksAreTheFirstOnes is what Match's search by halves rests on, under random ends.
func TestHeldBlocksAreTheFirstOnes(t *testing.T) {
	cuts := 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 8))
		x := NewIndex(2 + rng.IntN(40))
		var lives []live
		for range 400 {
			if len(lives) < 1+rng.IntN(8) {
				c := randomChain(rng, 15)
				lives = append(lives, live{c: c, hold: x.Pin(c, rng.IntN(4))})
			} else {
				i := rng.IntN(len(lives))
				x.Unpin(lives[i].c, lives[i].hold, drawComputed(rng, lives[i].c))
				lives[i] = lives[len(lives)-1]
				lives = lives[:len(lives)-1]
			}
			c := randomChain(rng, 15)
			held := 0
			for _, h := range c {
				if _, ok := x.byHash[h]; ok {
					held++
				}
			}
			if n := x.Match(c); n != held {
				t.Fatalf("seed %d: Match = %d, and %d of %d blocks are held", seed, n, held, len(c))
			}
			if held > 0 && held < len(c) {
				cuts++
			}
		}
	}
	if cuts < 5000 {
		t.Errorf("%d chains held in part: the histories are too tame", cuts)
	}
}
