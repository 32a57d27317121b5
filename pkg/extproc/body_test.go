package extproc

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestBodyInPieces cuts texts at random: they come out whole, large pieces are those that came, and what small ones take
// beyond their bytes is bounded.
func TestBodyInPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 300_000)
	for i := range text {
		text[i] = byte(rng.Uint32())
	}
	for _, most := range []int{1, 3, 100, joined - 1, joined, joined + 1, 64 << 10} {
		var b body
		own := map[*byte]bool{}
		for rest := text; len(rest) > 0; {
			n := min(len(rest), 1+rng.IntN(most))
			if most > joined {
				n = min(len(rest), most)
			}
			piece := bytes.Clone(rest[:n])
			own[&piece[0]] = n > joined
			b.add(piece)
			b.add(nil)
			rest = rest[n:]
		}
		room := 0
		for _, piece := range b.pieces {
			if room += cap(piece); len(piece) > joined && !own[&piece[0]] {
				t.Errorf("pieces of up to %d: one of %d bytes is a copy", most, len(piece))
			}
		}
		var buf []byte
		if got := b.flatten(&buf); !bytes.Equal(got, text) || b.size != len(text) {
			t.Errorf("pieces of up to %d: %d bytes of %d come out", most, len(got), len(text))
		}
		if n := len(b.pieces); n > 2*len(text)/joined+1 || room > len(text)*5/4+2*joined {
			t.Errorf("pieces of up to %d: %d are kept, with room for %d bytes", most, n, room)
		}
	}
}
