package chain

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// slow chains a whole stream as the package comment defines it.
func slow(seed uint64, stream []byte) (c Chain) {
	for b := range slices.Chunk(stream, BlockBytes) {
		if len(b) < BlockBytes {
			break
		}
		d := xxhash.NewWithSeed(seed)
		d.Write(b)
		seed = d.Sum64()
		c = append(c, Hash(seed))
	}
	return c
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b[:n]
}

func hash(seed uint64, pieces ...[]byte) Chain {
	var h Hasher
	h.Reset(seed, nil)
	for _, p := range pieces {
		h.Write(p)
	}
	return h.Chain()
}

// TestKnownChain pins the hashes: routers of different versions must agree on homes, so a change of them is a
// change of the protocol.
func TestKnownChain(t *testing.T) {
	stream := make([]byte, 2*BlockBytes)
	for i := range stream {
		stream[i] = byte(i)
	}
	want := Chain{0x85e59d69d81fd1e7, 0x7d43eb4286761210}
	if got := hash(Seed("model", "salt"), stream); !slices.Equal(got, want) {
		t.Errorf("chain %#x, want %#x", got, want)
	}
}

// TestWritesMayBeCutAnywhere compares random cuts of random streams with the definition.
func TestWritesMayBeCutAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		stream := noise(r, r.IntN(5*BlockBytes))
		seed := r.Uint64()
		var h Hasher
		h.Reset(seed, nil)
		for rest := stream; len(rest) > 0; {
			n := min(len(rest), r.IntN(1+[]int{2, 40, 600}[r.IntN(3)]))
			h.Write(rest[:n])
			rest = rest[n:]
		}
		if want := slow(seed, stream); !slices.Equal(h.Chain(), want) {
			t.Fatalf("%d bytes: chain %x, want %x", len(stream), h.Chain(), want)
		}
	}
}

func TestOnlyFullBlocksHaveAHash(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 0, BlockBytes - 1: 0, BlockBytes: 1, BlockBytes + 1: 1, 2*BlockBytes - 1: 1, 10 * BlockBytes: 10} {
		if got := hash(0, make([]byte, n)); len(got) != want {
			t.Errorf("%d bytes make %d blocks, want %d", n, len(got), want)
		}
	}
}

// TestSharedBlocksAreTheSharedPrefix: two streams that part at byte d share the blocks that end before it, and
// none after it, equal as the later bytes may be.
func TestSharedBlocksAreTheSharedPrefix(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 500 {
		a := noise(r, 20*BlockBytes)
		b := slices.Clone(a)
		d := r.IntN(len(a))
		b[d] ^= 1
		ca, cb := hash(7, a), hash(7, b)
		for i := range ca {
			if same := ca[i] == cb[i]; same != (i < d/BlockBytes) {
				t.Fatalf("streams part in block %d; block %d is equal: %v", d/BlockBytes, i, same)
			}
		}
	}
}

func TestSeedsPartition(t *testing.T) {
	block := make([]byte, BlockBytes)
	seen := map[Hash]string{}
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"abc", ""}, {"", "abc"}, {"a", "b", "c"}} {
		name := fmt.Sprintf("%q", parts)
		h := hash(Seed(parts...), block)[0]
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s give one chain", name, other)
		}
		seen[h] = name
		if again := hash(Seed(slices.Clone(parts)...), block)[0]; again != h {
			t.Errorf("%s gives two chains", name)
		}
	}
}

// TestResetUsesMemoryAgain: a Hasher with a chain of enough capacity allocates nothing, and starts afresh.
func TestResetUsesMemoryAgain(t *testing.T) {
	stream := noise(rand.New(rand.NewPCG(3, 3)), 8*BlockBytes+9)
	want := slow(5, stream)
	var h Hasher
	dst := make(Chain, 3, len(want))
	model, salt := "model", "salt"
	n := testing.AllocsPerRun(10, func() {
		h.Reset(Seed(model, salt), dst)
		h.Write(stream)
		h.Reset(5, dst)
		h.Write(stream[:100])
		h.Write(stream[100:])
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := h.Chain(); !slices.Equal(got, want) || &got[0] != &dst[0] {
		t.Errorf("chain %x in other memory or not %x", got, want)
	}
}

// BenchmarkHasher hashes 128 KiB in writes of several sizes.
func BenchmarkHasher(b *testing.B) {
	stream := noise(rand.New(rand.NewPCG(4, 4)), 128<<10)
	for _, size := range []int{128 << 10, 4 << 10, 100, 10} {
		b.Run(fmt.Sprintf("writes=%d", size), func(b *testing.B) {
			var h Hasher
			var dst Chain
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				h.Reset(1, dst)
				for p := range slices.Chunk(stream, size) {
					h.Write(p)
				}
				dst = h.Chain()
			}
		})
	}
}
