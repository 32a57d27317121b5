package prompt

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
)

// TestSpellingLeavesNoTrace draws conversations and spells each in two ways: both have one chain, the
// reference's.
func TestSpellingLeavesNoTrace(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 150 {
		c := converse(r)
		a, b := render{r}.body(c), render{r}.body(c)
		if !json.Valid([]byte(a)) || !json.Valid([]byte(b)) {
			t.Fatalf("draw %d is no JSON: %q, %q", i, a, b)
		}
		sameChain(t, chatPath, a, b)
		compare(t, APIChat, positions[i%4], []byte(a))
		compare(t, APICompletions, positions[i%4], []byte(b))
		if t.Failed() {
			t.Fatalf("draw %d", i)
		}
	}
}

// TestChangesShow draws a conversation, changes one string of it and asks for another chain.
func TestChangesShow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		c := converse(r)
		c.turns = append(c.turns, turn{role: "user", content: []string{text(r, 300)}, image: "i", id: "id", call: [2]string{"f", "{}"}})
		a := render{r}.body(c)
		last := &c.turns[len(c.turns)-1]
		for _, s := range []*string{&c.model, &c.salt, &last.role, &last.content[0], &last.image, &last.id, &last.call[0], &last.call[1]} {
			old := *s
			*s += "a"
			otherChain(t, chatPath, a, render{r}.body(c))
			*s = old
		}
	}
}

// shared returns the leading blocks that two bodies have in common, without the padding that parse adds.
func shared(a, b string) (n int, pa, pb Prompt) {
	var p Parser
	p.Parse(&pa, Input{Path: chatPath, Body: []byte(a)})
	p.Parse(&pb, Input{Path: chatPath, Body: []byte(b)})
	for n < min(len(pa.Chain), len(pb.Chain)) && pa.Chain[n] == pb.Chain[n] {
		n++
	}
	return n, pa, pb
}

// TestPrefixesAreShared: a conversation that goes on keeps every full block of what came before, and two texts
// with a common start share it block by block.
func TestPrefixesAreShared(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		c := converse(r)
		short := render{r}.body(c)
		c.turns = append(c.turns, turn{role: "user", content: []string{text(r, 500)}})
		if n, pa, _ := shared(short, render{r}.body(c)); n != len(pa.Chain) {
			t.Fatalf("%d of %d blocks kept", n, len(pa.Chain))
		}
	}
	for _, common := range []int{0, 100, 256, 5000, 100_000} {
		start := strings.Repeat("w", common)
		a, b := chat(`{"role":"system","content":"`+start+`\n1"}`), chat(`{"role":"system","content":"`+start+`2`+strings.Repeat("x", 999)+`"}`)
		framing := len("__M"+"system"+"__X") - 2
		if n, _, _ := shared(a, b); n != (common+framing)/chain.BlockBytes {
			t.Errorf("texts with %d common bytes share %d blocks", common, n)
		}
	}
}

// TestTokensAndBlocksAgree: a chain is as long as its tokens.
func TestTokensAndBlocksAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		var p Parser
		var dst Prompt
		p.Parse(&dst, Input{Path: chatPath, Body: []byte(render{r}.body(converse(r)))})
		if len(dst.Chain) != dst.Tokens/chain.BlockTokens && len(dst.Chain) != (dst.Tokens-1)/chain.BlockTokens {
			t.Errorf("%d tokens in %d blocks", dst.Tokens, len(dst.Chain))
		}
	}
}

// TestDamagedBodiesDoNoHarm cuts and damages bodies at random. A cut one is never taken for a whole one.
func TestDamagedBodiesDoNoHarm(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	var p Parser
	var dst Prompt
	for range 300 {
		body := bytes.TrimSpace([]byte(render{r}.body(converse(r))))
		for _, path := range []string{chatPath, completionsPath} {
			for range 20 {
				p.Parse(&dst, Input{Path: path, Body: body[:r.IntN(len(body))]})
				if dst.Reason != ReasonNotJSON && dst.Reason != ReasonEmpty {
					t.Fatalf("a cut body is read: %v", dst.Reason)
				}
				damaged := slices.Clone(body)
				for range 1 + r.IntN(4) {
					damaged[r.IntN(len(damaged))] = "\"\\{}[],:\x00\xffu0n"[r.IntN(13)]
				}
				p.Parse(&dst, Input{Path: path, Body: damaged})
			}
		}
	}
}

// TestParserForgets: what one body leaves in a Parser never shows in the next.
func TestParserForgets(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	var reused Parser
	var dst Prompt
	for range 500 {
		body := []byte(render{r}.body(converse(r)))
		if r.IntN(3) == 0 {
			body = []byte(slices.Concat(seeds, shapeSeeds)[r.IntN(len(seeds)+len(shapeSeeds))])
		}
		in := Input{Path: "/other", Body: body, Partial: r.IntN(2) == 0, Tools: map[string]ToolsPosition{"m": positions[r.IntN(4)]}}
		if api := API(r.IntN(7)); api != APIOther {
			in.Path = paths[api]
			if r.IntN(2) == 0 {
				in.Body = []byte(render{r}.of(api, converse(r)))
			}
		}
		if in.Partial {
			in.Body = in.Body[:r.IntN(len(in.Body)+1)]
		}
		var fresh Parser
		var want Prompt
		fresh.Parse(&want, in)
		reused.Parse(&dst, in)
		if !slices.Equal(want.Chain, dst.Chain) || want.Tokens != dst.Tokens || want.Model != dst.Model || want.Reason != dst.Reason || want.MaxTokens != dst.MaxTokens ||
			want.Prompts != dst.Prompts || want.Answers != dst.Answers || want.Stream != dst.Stream || want.CacheKey != dst.CacheKey || want.Silent != dst.Silent {
			t.Fatalf("a used Parser reads %+v, a new one %+v: %s", dst, want, body)
		}
	}
}

// TestParseAllocatesNothing once its memory has grown.
func TestParseAllocatesNothing(t *testing.T) {
	bodies := [][]byte{[]byte(`{"model":"m","prompt":[[1,2],"x"],"cache_salt":"s"}`), []byte("{"), []byte(seeds[2])}
	for _, b := range benchBodies(16 << 10) {
		bodies = append(bodies, b)
	}
	for _, s := range shapeSeeds {
		bodies = append(bodies, []byte(s))
	}
	tools := map[string]ToolsPosition{"m": ToolsBeforeLastUser}
	for _, body := range bodies {
		var p Parser
		var dst Prompt
		for _, path := range []string{chatPath, "/a//v1/%63ompletions/?q", "/v1/other", messagesPath, paths[APIResponses], paths[APIEmbeddings]} {
			for _, partial := range []bool{false, true} {
				if n := testing.AllocsPerRun(20, func() { p.Parse(&dst, Input{Path: path, Body: body, Partial: partial, Tools: tools}) }); n != 0 {
					t.Errorf("%s %.60s: %v allocations", path, body, n)
				}
			}
		}
	}
}
