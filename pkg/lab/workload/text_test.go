package workload

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// piece is a stretch of a text in the slow oracle.
type piece struct {
	name   uint64
	tokens int
}

// spelled writes the pieces out, a token as its piece and its place in it.
func spelled(pieces []piece) (tokens [][2]uint64) {
	for _, p := range pieces {
		for i := range p.tokens {
			tokens = append(tokens, [2]uint64{p.name, uint64(i)})
		}
	}
	return tokens
}

func built(pieces []piece) text {
	var t text
	for i, p := range pieces {
		if i%2 == 0 {
			t.add(p.name, p.tokens)
		} else {
			t = t.with(p.name, p.tokens)
		}
	}
	return t
}

// TestTextsShareBlocksAsTheyShareTokens holds the hashes against texts written out token by token.
func TestTextsShareBlocksAsTheyShareTokens(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func() []piece {
		p := make([]piece, 1+rng.IntN(4))
		for i := range p {
			p[i] = piece{uint64(rng.IntN(2)), []int{1, 5, 16, 17, 40}[rng.IntN(5)]}
		}
		return p
	}
	shared := 0
	for range 5000 {
		a, b := random(), random()
		if rng.IntN(2) == 0 {
			b = append(slices.Clone(a[:rng.IntN(len(a)+1)]), b...)
		}
		x, y := built(a), built(b)
		longA, longB := spelled(a), spelled(b)
		if x.tokens != len(longA) || len(x.blocks) != len(longA)/step.BlockTokens {
			t.Fatalf("%v: %d tokens in %d blocks", a, x.tokens, len(x.blocks))
		}
		want := 0
		for want < len(longA) && want < len(longB) && longA[want] == longB[want] {
			want++
		}
		want /= step.BlockTokens
		for i := range min(len(x.blocks), len(y.blocks)) {
			if same := x.blocks[i] == y.blocks[i]; same != (i < want) {
				t.Fatalf("%v and %v: block %d the same: %t, and they share %d", a, b, i, same, want)
			}
		}
		shared += want
	}
	if shared < 1000 {
		t.Errorf("only %d shared blocks were tried", shared)
	}
}

// TestWithLeavesTheText: two prompts made from one prefix do not write into each other.
func TestWithLeavesTheText(t *testing.T) {
	var prefix text
	prefix.add(1, 40)
	a := prefix.with(2, 100)
	before := slices.Clone(a.blocks)
	b := prefix.with(3, 100)
	if !slices.Equal(a.blocks, before) || prefix.tokens != 40 || len(prefix.blocks) != 2 {
		t.Error("a prefix or a prompt changed when another was made from it")
	}
	if a.blocks[1] != b.blocks[1] || a.blocks[2] == b.blocks[2] {
		t.Error("prompts share something else than their prefix")
	}
}
