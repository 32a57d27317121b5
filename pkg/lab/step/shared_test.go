package step

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// lru is Shared without cleverness: a list of blocks, the most recently used one last.
type lru struct {
	list []uint64
	size int
}

func (l *lru) serve(hashes []uint64, prompt, output int) int {
	held := 0
	for held < len(hashes) && slices.Contains(l.list, hashes[held]) {
		held++
	}
	all := (prompt + output + BlockTokens - 1) / BlockTokens
	l.list = slices.DeleteFunc(l.list, func(h uint64) bool { return slices.Contains(hashes[:held], h) })
	room := min(l.size, max(all, len(hashes)))
	for len(l.list)+room > l.size {
		l.list = l.list[1:]
	}
	for i := room - 1; i >= 0; i-- {
		h := uint64(0) // a block without a name
		if i < len(hashes) {
			h = hashes[i]
		}
		l.list = append(l.list, h)
	}
	return min(held, (prompt-1)/BlockTokens) * BlockTokens
}

// TestSharedIsLRU compares it with a list, over texts that share beginnings and do not all fit.
func TestSharedIsLRU(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		size := 40 + rng.IntN(200)
		s, l := NewShared(size), &lru{size: size}
		found := 0
		for range 400 {
			group, own := uint64(rng.IntN(8)+1), rng.Uint64N(4)
			var hashes []uint64
			for i := range 3 + rng.IntN(30) {
				h := group<<32 | uint64(i+1)
				if i >= 5 {
					h |= (own + 1) << 40
				}
				hashes = append(hashes, h)
			}
			prompt, output := len(hashes)*BlockTokens+rng.IntN(BlockTokens), rng.IntN(100)
			got, want := s.Serve(hashes, prompt, output), l.serve(hashes, prompt, output)
			if got != want {
				t.Fatalf("seed %d: %d tokens of %d held, want %d", seed, got, prompt, want)
			}
			found += got
		}
		named := len(slices.DeleteFunc(slices.Clone(l.list), func(h uint64) bool { return h == 0 }))
		if found == 0 || s.used != len(l.list) || s.Named() != named {
			t.Fatalf("seed %d: %d tokens found, %d blocks used, %d named, want %d and %d", seed, found, s.used, s.Named(), len(l.list), named)
		}
	}
}

// TestSharedStopsAtZero: a block without a hash is never found again, nor what follows it; the last token is computed.
func TestSharedStopsAtZero(t *testing.T) {
	s := NewShared(100)
	for i, c := range []struct {
		hashes []uint64
		prompt int
		want   int
	}{
		{[]uint64{5, 6, 0, 8}, 70, 0},
		{[]uint64{5, 6, 0, 8}, 70, 32},
		{[]uint64{5, 6}, 32, 16},
		{nil, 5, 0},
	} {
		if got := s.Serve(c.hashes, c.prompt, 1); got != c.want {
			t.Errorf("request %d: %d tokens, want %d", i, got, c.want)
		}
	}
}

// TestSharedTooSmall: a text larger than the cache leaves its beginning there.
func TestSharedTooSmall(t *testing.T) {
	s := NewShared(2)
	hashes := []uint64{1, 2, 3, 4}
	s.Serve(hashes, 70, 10)
	if got := s.Serve(hashes, 70, 10); got != 32 {
		t.Errorf("%d tokens of a text twice as long as the cache, want 32", got)
	}
}
