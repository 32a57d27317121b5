package prompt

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
)

// apis are those that are read.
var apis = []API{APIChat, APICompletions, APIResponses, APIMessages, APICount, APIEmbeddings}

// TestEveryShapeIsReadAlike draws conversations and spells each in two ways for every API: both have one chain,
// the reference's, wherever tools stand, and at the path of another API as well what the reference makes of it.
func TestEveryShapeIsReadAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for i := range 60 {
		c := converse(r)
		for _, api := range apis {
			at := positions[r.IntN(4)]
			a, b := render{r}.of(api, c), render{r}.of(api, c)
			pa, pb := parseAt(paths[api], at, a), parseAt(paths[api], at, b)
			if pa.Reason != ReasonNone || pa.Tokens != pb.Tokens || !slices.Equal(pa.Chain, pb.Chain) {
				t.Errorf("%v, %v tokens and %v, %v tokens of %q, %q", pa.Reason, pa.Tokens, pb.Reason, pb.Tokens, a, b)
			}
			compare(t, api, at, []byte(a))
			compare(t, apis[r.IntN(len(apis))], at, []byte(b))
			if t.Failed() {
				t.Fatalf("draw %d as %v", i, api)
			}
		}
	}
}

// TestChainsPartWhereTheyDiffer: of two conversations that differ in one string, all blocks before the first byte
// that differs are equal, and from that block on all are different. Where that byte is, the reference tells.
func TestChainsPartWhereTheyDiffer(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	parted, kept := 0, 0
	for range 60 {
		c := converse(r)
		c.turns = append(c.turns, turn{role: "user", content: []string{text(r, 900)}, image: "i"},
			turn{role: "assistant", content: []string{text(r, 300)}, id: "id", call: [2]string{"f", "{}"}}, turn{role: "user", content: []string{text(r, 900)}})
		for _, api := range apis {
			at := positions[r.IntN(4)]
			a := render{r}.of(api, c)
			turn := &c.turns[r.IntN(len(c.turns))]
			spots := []*string{&turn.image, &turn.id, &turn.call[1], &c.effort}
			for i := range turn.content {
				spots = append(spots, &turn.content[i])
			}
			for _, list := range [][]string{c.tools, c.documents, c.kwargs} {
				for i := range list {
					spots = append(spots, &list[i])
				}
			}
			spot := spots[r.IntN(len(spots))]
			old := *spot
			runes := []rune(old)
			if len(runes) == 0 {
				continue
			}
			runes[r.IntN(len(runes))] = '~' // which no text has
			*spot = string(runes)
			b := render{r}.of(api, c)
			*spot = old
			ra, rb := reference(api, at, []byte(a)), reference(api, at, []byte(b))
			if slices.Equal(ra.stream, rb.stream) {
				continue // the API has no place for it, or another prompt of the list has it
			}
			differ := 0
			for differ < min(len(ra.stream), len(rb.stream)) && ra.stream[differ] == rb.stream[differ] {
				differ++
			}
			var p Parser
			var pa, pb Prompt
			tools := map[string]ToolsPosition{c.model: at}
			p.Parse(&pa, Input{Path: paths[api], Body: []byte(a), Tools: tools})
			p.Parse(&pb, Input{Path: paths[api], Body: []byte(b), Tools: tools})
			for i := range min(len(pa.Chain), len(pb.Chain)) {
				if same, want := pa.Chain[i] == pb.Chain[i], i < differ/chain.BlockBytes; same != want {
					t.Fatalf("%v: block %d is the same: %v, and byte %d the first that differs of %q, %q", api, i, same, differ, a, b)
				}
				if i < differ/chain.BlockBytes {
					kept++
				} else {
					parted++
				}
			}
			if len(pa.Chain) < differ/chain.BlockBytes {
				t.Fatalf("%v: %d blocks where %d bytes are common", api, len(pa.Chain), differ)
			}
		}
	}
	if kept < 500 || parted < 500 {
		t.Errorf("only %d blocks before and %d behind were looked at", kept, parted)
	}
}

// ends is where the values of a body's outermost members end.
func ends(t *testing.T, body string) map[string]int {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(body))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		all[key.(string)] = int(dec.InputOffset())
	}
	return all
}

// TestCutBodiesHaveTheWholeChain: wherever a body is cut behind its model and salt, its chain is the beginning of
// the whole one's, whatever the order of its members and of what is in them.
func TestCutBodiesHaveTheWholeChain(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	var blocks, whole [APIEmbeddings + 1]int
	for i := range 150 {
		c := converse(r)
		c.turns = append(c.turns, turn{role: "user", content: []string{text(r, 3000)}})
		for _, api := range apis {
			at := positions[r.IntN(4)]
			var order []string
			if i%2 == 0 {
				order = []string{"messages", "prompt", "input"}
			}
			body := render{r}.of(api, c, order...)
			end := ends(t, body)
			var p Parser
			var all, dst Prompt
			tools := map[string]ToolsPosition{c.model: at, "": at}
			p.Parse(&all, Input{Path: paths[api], Body: []byte(body), Tools: tools})
			for range 20 {
				cut := r.IntN(len(body) + 1)
				size := int64(len(body))
				p.Parse(&dst, Input{Path: paths[api], Body: []byte(body[:cut]), Size: size, Partial: true, Tools: tools})
				early := false // what is taken as absent is not there yet
				for _, k := range []string{"model", "cache_salt", "documents", "chat_template_kwargs", "reasoning_effort", "output_config", "reasoning"} {
					early = early || cut < end[k]
				}
				if early {
					continue
				}
				if len(dst.Chain) > len(all.Chain) || !slices.Equal(dst.Chain, all.Chain[:len(dst.Chain)]) {
					t.Fatalf("%v with tools %q, cut at %d of %d: chain %x, whole %x, of %q", api, at, cut, len(body), dst.Chain, all.Chain, body)
				}
				if dst.Model != c.model || dst.Reason != ReasonNone && cut > end["metadata"] && cut > 0 && dst.Reason != all.Reason {
					t.Fatalf("%v: cut at %d: %v, model %q", api, cut, dst.Reason, dst.Model)
				}
				blocks[api] += len(dst.Chain)
				whole[api] += len(all.Chain) * cut / len(body)
			}
		}
	}
	for api, percent := range map[API]int{APIChat: 50, APICompletions: 100, APIEmbeddings: 100, APIMessages: 6, APICount: 4} {
		if blocks[api]*100 < whole[api]*percent { // of escaped texts more than bytes came
			t.Errorf("%v: cut bodies have %d blocks of %d that came", api, blocks[api], whole[api])
		}
	}
}
