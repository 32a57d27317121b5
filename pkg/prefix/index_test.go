package prefix

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
)

// randomChain walks down a tree in which each node has three children, so that chains share prefixes of every
// depth. A hash names its whole path.
func randomChain(rng *rand.Rand, depth int) chain.Chain {
	h, c := uint64(1), chain.Chain{}
	for range rng.IntN(depth + 1) {
		h = h*4 + 1 + rng.Uint64N(3)
		c = append(c, chain.Hash(h))
	}
	return c
}

// drawComputed is how many of a request's blocks were computed: all, none, or some of the chain and of its answer.
func drawComputed(rng *rand.Rand, c chain.Chain) int {
	return []int{All, 0, rng.IntN(len(c) + 4)}[rng.IntN(3)]
}

// live is a request that holds blocks of both models.
type live struct {
	c                chain.Chain
	hold             Pins
	named, anonymous int
	old              bool // pinned before a Reset
}

func TestIndexAgreesWithSlowLRU(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		capacity := 1 + rng.IntN(60)
		x, slow := NewIndex(capacity), &slowIndex{capacity: capacity}
		var lives []live
		for step := range 600 {
			switch k := rng.IntN(100); {
			case k < 55 && len(lives) < 12:
				l := live{c: randomChain(rng, 12)}
				extra := rng.IntN(5)
				l.hold = x.Pin(l.c, extra)
				l.named, l.anonymous = slow.pin(l.c, extra)
				if l.hold.named != l.named || l.hold.anonymous != l.anonymous {
					t.Fatalf("seed %d step %d: Pin took %+v, want %d named, %d anonymous", seed, step, l.hold, l.named, l.anonymous)
				}
				lives = append(lives, l)
			case k < 98 && len(lives) > 0:
				i := rng.IntN(len(lives))
				l := lives[i]
				lives = slices.Delete(lives, i, i+1)
				computed := drawComputed(rng, l.c)
				x.Unpin(l.c, l.hold, computed)
				if !l.old {
					slow.unpin(l.c, l.named, l.anonymous, computed)
				}
			case k == 98 && step%2 == 0:
				slow.capacity = 1 + rng.IntN(60)
				slow.fit(slow.capacity)
				x.Resize(slow.capacity)
			case k == 98:
				slow.others = float64(rng.IntN(5)) / 4
				x.SetOthers(slow.others)
			case k == 99:
				x.Reset()
				slow.blocks, slow.owed = nil, 0
				for i := range lives {
					lives[i].old = true
				}
			}
			checkIndex(t, rng, x, slow)
			if t.Failed() {
				t.Fatalf("seed %d step %d capacity %d", seed, step, capacity)
			}
		}
		for i, l := range lives {
			x.Unpin(l.c, l.hold, i)
		}
		if x.Pinned() != 0 || x.reserved != 0 {
			t.Fatalf("seed %d: %d blocks pinned and %d reserved with no request left", seed, x.Pinned(), x.reserved)
		}
	}
}

// checkIndex compares the index with the slow one, block by block, and checks what must hold of either.
func checkIndex(t *testing.T, rng *rand.Rand, x *Index, slow *slowIndex) {
	t.Helper()
	if used := x.usedLocked(); used != len(slow.blocks) || used > max(x.capacity, slow.pinned()) {
		t.Errorf("%d blocks used of %d, want %d", used, x.capacity, len(slow.blocks))
	}
	if x.Pinned() != slow.pinned() {
		t.Errorf("%d blocks pinned, want %d", x.Pinned(), slow.pinned())
	}
	for h := range x.byHash {
		if slow.find(h) < 0 {
			t.Errorf("block %x is held and should not be", h)
		}
		if parent := (uint64(h) - 1) / 4; parent > 1 { // the root, 1, is no block
			if _, ok := x.byHash[chain.Hash(parent)]; !ok {
				t.Errorf("block %x is held without the block before it", h)
			}
		}
	}
	for range 5 {
		c := randomChain(rng, 14)
		got, want := x.Match(c), slow.match(c)
		if try, ok := x.TryMatch(c, 0); got != want || !ok || try != want {
			t.Errorf("Match(%x) = %d, TryMatch = %d, %v, want %d", c, got, try, ok, want)
		}
		for guess := -1; guess <= len(c)+1; guess++ {
			if near := x.MatchNear(c, guess); near != want {
				t.Errorf("MatchNear(%x, %d) = %d, want %d", c, guess, near, want)
			}
		}
	}
}

// What was pinned before a restart must not be taken from requests that came after it, which may use the
// same blocks.
func TestUnpinAfterResetTouchesNothing(t *testing.T) {
	c := chain.Chain{1, 2, 3}
	x := NewIndex(10)
	before := x.Pin(c, 2)
	x.Reset()
	after := x.Pin(c, 2)
	x.Unpin(c, before, All)
	if x.Pinned() != 5 || x.Match(c) != 3 {
		t.Errorf("%d blocks pinned and %d matched after the old request's end, want 5 and 3", x.Pinned(), x.Match(c))
	}
	x.Unpin(c, after, All)
	if x.Pinned() != 0 || x.Match(c) != 3 {
		t.Errorf("%d blocks pinned and %d matched in the end, want 0 and 3", x.Pinned(), x.Match(c))
	}
}

func TestVersionChangesWithEveryAnswer(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	x := NewIndex(20)
	var lives []live
	probe := make([]chain.Chain, 50)
	for i := range probe {
		probe[i] = randomChain(rng, 8)
	}
	answers := func() (a []int) {
		for _, c := range probe {
			a = append(a, x.Match(c))
		}
		return a
	}
	changed := 0
	for range 2000 {
		version, before := x.Version(), answers()
		if len(lives) < 5 {
			c := randomChain(rng, 8)
			lives = append(lives, live{c: c, hold: x.Pin(c, 1)})
		} else {
			x.Unpin(lives[0].c, lives[0].hold, drawComputed(rng, lives[0].c))
			lives = lives[1:]
		}
		if !slices.Equal(before, answers()) {
			changed++
			if x.Version() == version {
				t.Fatal("an answer changed and the version did not")
			}
		}
	}
	if changed < 100 {
		t.Fatalf("only %d of 2000 steps changed an answer: the test is too weak", changed)
	}
}

func TestTryMatchDoesNotWait(t *testing.T) {
	x := NewIndex(4)
	x.Pin(chain.Chain{1, 2}, 0)
	x.mu.Lock()
	if n, ok := x.TryMatch(chain.Chain{1}, 0); ok {
		t.Errorf("TryMatch answered %d beside a writer", n)
	}
	x.mu.Unlock()
	if n, ok := x.TryMatch(chain.Chain{1}, 0); !ok || n != 1 {
		t.Errorf("TryMatch = %d, %v, want 1, true", n, ok)
	}
}

func TestIndexIsSafeForConcurrentUse(t *testing.T) {
	x := NewIndex(40)
	var all sync.WaitGroup
	for g := range uint64(8) {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(g, 3))
			for i := range 2000 {
				c := randomChain(rng, 10)
				hold := x.Pin(c, rng.IntN(3))
				if n := x.Match(c); g != 0 && n < 0 {
					t.Errorf("Match = %d", n)
				}
				if g == 0 && i%100 == 0 {
					x.Reset()
				}
				x.TryMatch(c, i%12)
				x.Unpin(c, hold, i%14)
			}
		})
	}
	all.Wait()
	if x.Pinned() != 0 || x.reserved != 0 || x.usedLocked() > x.capacity {
		t.Errorf("pinned %d, reserved %d, used %d of %d", x.Pinned(), x.reserved, x.usedLocked(), x.capacity)
	}
}

func TestIndexHoldsAtLeastOneBlock(t *testing.T) {
	x := NewIndex(0)
	if hold := x.Pin(chain.Chain{1, 2}, 1); hold.named != 1 || hold.anonymous != 0 {
		t.Errorf("Pin took %+v of an index of one block, want one named", hold)
	}
}
