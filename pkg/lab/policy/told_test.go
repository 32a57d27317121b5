package policy

import (
	"slices"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
)

// TestToldPrompt: a text of 3.2 bytes a token is cut into blocks of 256 bytes, or 80 tokens, and its tokens estimated at 4.
func TestToldPrompt(t *testing.T) {
	for _, c := range []struct {
		bytes  string
		blocks int // of 16 tokens in each
		tokens int
	}{{"3.2", 5, 800}, {"4", 4, 1000}, {"16", 1, 4000}, {"1", 16, 250}} {
		var told told
		if ok, err := told.set("bytes_per_token", c.bytes); !ok || err != nil {
			t.Fatal(ok, err)
		}
		q := call(1, 1000)
		p := told.prompt(q)
		var want chain.Chain
		for i := c.blocks; i <= 1000/16; i += c.blocks {
			want = append(want, chain.Hash(q.Req.Blocks[i-1]))
		}
		if p.Exact || p.Tokens != c.tokens || !slices.Equal(p.Chain, want) {
			t.Errorf("%s bytes a token: exact %v, %d tokens, %d blocks; want %d and %d", c.bytes, p.Exact, p.Tokens, len(p.Chain), c.tokens, len(want))
		}
	}
	if p := (&told{}).prompt(call(1, 1000)); !p.Exact || p.Tokens != 1000 || len(p.Chain) != 15 {
		t.Errorf("the truth: %+v", p)
	}
}
