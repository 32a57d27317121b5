package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// words is plain English text of n bytes with a line break about every 80.
func words(n int, lineBreak string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "sentence %d of the document says little about the subject, as such texts do.%s", i, lineBreak)
	}
	return b.String()[:n]
}

// benchBodies are chat bodies of a given size: text with line breaks, text without an escape, and text in
// which every character is one.
func benchBodies(size int) map[string][]byte {
	dense := strings.Repeat(`\u4f60\u597d\"`, size/14)
	chat := func(text string) []byte {
		return []byte(`{"model":"meta-llama/Llama-3.1-8B-Instruct","messages":[{"role":"system","content":"` + text +
			`"},{"role":"user","content":"Which of these is right?"}],"max_tokens":256,"stream":true}`)
	}
	return map[string][]byte{"breaks": chat(words(size, `\n`)), "plain": chat(words(size, " ")), "escaped": chat(dense)}
}

// minimal is the least that a decoder must fill for the same prompt.
type minimal struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	MaxTokens int  `json:"max_tokens"`
	Stream    bool `json:"stream"`
}

func BenchmarkParse(b *testing.B) {
	for _, size := range []int{1 << 10, 128 << 10} {
		bodies := benchBodies(size)
		for _, name := range []string{"plain", "breaks", "escaped"} {
			body := bodies[name]
			b.Run(fmt.Sprintf("chat/%dKiB/%s/weir", size>>10, name), func(b *testing.B) {
				var p Parser
				var dst Prompt
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					p.Parse(&dst, "/v1/chat/completions", "", body)
				}
				if dst.Reason != ReasonNone || dst.Tokens == 0 {
					b.Fatalf("read as %+v", dst)
				}
			})
			b.Run(fmt.Sprintf("chat/%dKiB/%s/encoding-json", size>>10, name), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					var m minimal
					if err := json.Unmarshal(body, &m); err != nil || len(m.Messages) != 2 {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkTools is an agent's body: many tools and calls, so many short strings and escaped quotes.
func BenchmarkTools(b *testing.B) {
	tool := `{"type":"function","function":{"name":"search_files","description":"Searches files.\nReturns \"matches\".","parameters":{"type":"object","properties":{"pattern":{"type":"string"},"limit":{"type":"integer","minimum":1}},"required":["pattern"]}}},`
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"search_files","arguments":"{\"pattern\":\"TODO\",\"limit\":10}"}}]},{"role":"tool","tool_call_id":"call_1","content":"none\n"},`
	body := []byte(`{"model":"m","tools":[` + strings.TrimSuffix(strings.Repeat(tool, 200), ",") + `],"messages":[` +
		strings.TrimSuffix(strings.Repeat(call, 330), ",") + `]}`)
	if !json.Valid(body) || bytes.Count(body, []byte("call_1")) == 0 {
		b.Fatal("the body is not what it should be")
	}
	var p Parser
	var dst Prompt
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		p.Parse(&dst, "/v1/chat/completions", "", body)
	}
}
