package prompt

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
)

// TestCutBodies: how many blocks a body's beginning has, in the orders in which real clients write its members.
func TestCutBodies(t *testing.T) {
	system, long := strings.Repeat("s", 4*chain.BlockBytes), strings.Repeat("u", 9*chain.BlockBytes)
	const tools = `"tools":[{"name":"f"}]`
	for _, c := range []struct {
		name, path, body string
		at               ToolsPosition
		blocks           int
	}{
		{"chat in the order of the openai package", chatPath, `{"model":"m","stream":true,"messages":[{"role":"system","content":"` + system + `"},{"role":"user","content":"` + long, "", 4},
		{"the system message is cut", chatPath, `{"model":"m","messages":[{"role":"system","content":"` + system, "", 4},
		{"tools before the messages", chatPath, `{"model":"m",` + tools + `,"messages":[{"role":"system","content":"` + system + `"},{"role":"user","content":"` + long, "", 13},
		{"a list of parts", chatPath, `{"model":"m",` + tools + `,"messages":[{"role":"user","content":[{"type":"text","text":"` + system + `"},{"type":"text","text":"` + long, "", 13},
		{"no tools", chatPath, `{"model":"m","tools":null,"messages":[{"role":"user","content":"` + long, "", 9},
		{"a role that has not come", chatPath, `{"model":"m",` + tools + `,"messages":[{"role":"system","content":"` + system + `"},{"content":"` + long, "", 4},
		{"tools first, which have not come", chatPath, `{"model":"m","messages":[{"role":"system","content":"` + system + `"},{"role":"user","content":"` + long, ToolsFirst, 0},
		{"before the last user", chatPath, `{"model":"m","messages":[{"role":"user","content":"` + system + `"},{"role":"user","content":"` + long, ToolsBeforeLastUser, 4},
		{"all messages and the beginning of what follows", chatPath, `{"model":"m","messages":[{"role":"user","content":"` + long + `"}],"tools":[],"max_tok`, "", 9},
		{"an image that is cut", chatPath, `{"model":"m",` + tools + `,"messages":[{"role":"user","content":[{"type":"text","text":"` + system + `"},{"type":"image_url","image_url":{"url":"` + long, "", 4},
		{"before the messages", chatPath, `{"model":"m","temperature":0.`, "", 0},
		{"completions, of which the last byte may be the first of two", completionsPath, `{"model":"m","prompt":"` + long, "", 8},
		{"a list of texts", completionsPath, `{"model":"m","prompt":["` + long, "", 8},
		{"the second of a list", completionsPath, `{"model":"m","prompt":["` + system + `","` + long, "", 4},
		{"token ids", completionsPath, `{"model":"m","prompt":[` + strings.Repeat("7,", 130) + `7`, "", 2},
		{"a list of token ids", completionsPath, `{"model":"m","prompt":[[` + strings.Repeat("7,", 130) + `7`, "", 2},
		{"embeddings", paths[APIEmbeddings], `{"model":"m","input":"` + long, "", 8},
		{"embeddings of messages", paths[APIEmbeddings], `{"model":"m","input":[{"role":"user","content":"` + long, "", 0},
		{"responses", paths[APIResponses], `{"model":"m","instructions":"` + system + `","input":"` + long, "", 0},
		{"messages in the order of the anthropic package", messagesPath, `{"max_tokens":9,"messages":[{"role":"user","content":"` + long + `"}],"model":"m"`, "", 0},
		{"messages, system first", messagesPath, `{"model":"m","system":"` + system + `","messages":[{"role":"user","content":"` + long, "", 4},
		{"messages, system and tools first", messagesPath, `{"model":"m","system":[{"type":"text","text":"` + system + `"}],` + tools + `,"messages":[{"role":"user","content":[{"type":"tool_result","content":"` + long, "", 13},
		{"messages, a system that is cut", messagesPath, `{"model":"m","messages":[],"system":[{"type":"text","text":"` + system, "", 4},
	} {
		var p Parser
		var got, whole Prompt
		tools := map[string]ToolsPosition{"m": c.at}
		p.Parse(&got, Input{Path: c.path, Body: []byte(c.body), Size: 4 << 20, Partial: true, Tools: tools})
		if len(got.Chain) != c.blocks || got.Reason != ReasonNone || got.Tokens != MaxSizeTokens || got.Model != "m" || got.MaxTokens == 0 && strings.HasPrefix(c.body, `{"max`) {
			t.Errorf("%s: %d blocks, want %d: %+v", c.name, len(got.Chain), c.blocks, got)
		}
		p.Parse(&whole, Input{Path: c.path, Body: []byte(c.body), Tools: tools})
		if whole.Reason != ReasonNotJSON || len(whole.Chain) != 0 {
			t.Errorf("%s, were it whole: %v", c.name, whole.Reason)
		}
	}
}

// TestUnseenIsAbsent: of a body that is cut, what has not come is as if it had never been written.
func TestUnseenIsAbsent(t *testing.T) {
	text := strings.Repeat("x", 2000)
	var p Parser
	var cut, without Prompt
	p.Parse(&cut, Input{Path: completionsPath, Body: []byte(`{"prompt":"` + text + `","max_tokens":10`), Size: 2100, Partial: true})
	p.Parse(&without, Input{Path: completionsPath, Body: []byte(`{"prompt":"` + text + `"}`)})
	if !slices.Equal(cut.Chain, without.Chain) || len(cut.Chain) != 7 || cut.MaxTokens != 0 || cut.Stream || cut.Answers != 1 || cut.Tokens != 525 || cut.Model != "" {
		t.Errorf("%+v, want the chain of %+v", cut, without)
	}
	for body, want := range map[string]Reason{"": ReasonEmpty, "no JSON": ReasonNotJSON, `{"prompt":]`: ReasonNotJSON, `{"messages":[5`: ReasonNone, `{`: ReasonNone} {
		if p.Parse(&cut, Input{Path: completionsPath, Body: []byte(body), Size: 400, Partial: true}); cut.Reason != want || cut.Tokens != 100 {
			t.Errorf("%q: %v, %d tokens", body, cut.Reason, cut.Tokens)
		}
	}
	p.Parse(&cut, Input{Path: completionsPath, Body: []byte(`{"prompt":"` + text + `"}`), Size: 2013, Partial: true})
	if cut.Tokens != 500 || len(cut.Chain) != 7 {
		t.Errorf("a body that came whole after all: %+v", cut)
	}
}

// TestCutsInEscapes: a string is cut at each of its bytes, and what is left is the beginning of what it stands for.
func TestCutsInEscapes(t *testing.T) {
	for _, text := range []string{
		`\\\\\\\\`, `a\\\"b\\\\\"`, `\u4f60\u597d\ud83d\ude00\ud83d\ude00x`, `\ud83d\ud83d\ude00`, `\\ud83d\\ud83dx`, `\n\t\\n\\\n`, "é中😀\xff\xfe",
		`\\\u005c\\u005c\\\\u005cx`, `\u005c\ude00\ud83d`,
	} {
		whole := make([]byte, 8*len(text)+maxStep)
		n, _ := decode(whole, []byte(text))
		for cut := range len(text) {
			body := `{"x":"` + text[:cut]
			s := scanner{b: []byte(body), i: 5, partial: true}
			raw := s.of(s.open())
			if !s.cut || s.reason != ReasonNone {
				t.Fatalf("%q is not cut: %v", body, s.reason)
			}
			if len(raw) == 0 {
				continue
			}
			out := make([]byte, len(whole))
			m, _ := decode(out, raw[1:len(raw)-1])
			if !strings.HasPrefix(string(whole[:n]), string(out[:m])) {
				t.Errorf("%q cut to %q stands for %q, whole %q", text, raw, out[:m], whole[:n])
			}
			if lost := cut - (len(raw) - 2); lost > 13 {
				t.Errorf("%q cut at %d: %d bytes lost", text, cut, lost)
			}
		}
	}
}

// TestCutBetweenResults: the results of tools go before the texts of their message, so that of one that is cut no text is sure.
func TestCutBetweenResults(t *testing.T) {
	text := func(s string) string { return `{"type":"text","text":"` + strings.Repeat(s, 400) + `"}` }
	result := func(s string) string {
		return `{"type":"tool_result","tool_use_id":"c","content":"` + strings.Repeat(s, 400) + `"}`
	}
	for _, content := range []string{text("a_") + "," + result("b_"), result("a_") + "," + text("b_") + "," + result("c_"), text("a_") + "," + text("b_")} {
		for _, role := range []string{"user", "system", "assistant"} {
			body := `{"model":"m","system":"s","tools":[{"name":"f"}],"messages":[{"role":"` + role + `","content":[` + content + `]},{"role":"user","content":"x"}]}`
			for _, at := range []ToolsPosition{"", ToolsFirst, ToolsBeforeLastUser} {
				var p Parser
				var cut, whole Prompt
				in := Input{Path: messagesPath, Body: []byte(body), Tools: map[string]ToolsPosition{"m": at}}
				p.Parse(&whole, in)
				in.Partial = true
				for n := 1; n < len(body); n++ {
					in.Body = []byte(body[:n])
					if p.Parse(&cut, in); len(cut.Chain) > len(whole.Chain) || !slices.Equal(cut.Chain, whole.Chain[:len(cut.Chain)]) {
						t.Fatalf("%q, tools %q: %d blocks that the whole does not begin with", body[:n], at, len(cut.Chain))
					}
				}
			}
		}
	}
}
