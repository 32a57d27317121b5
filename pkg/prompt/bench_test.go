package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	goccy "github.com/goccy/go-json"
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

// minimal is the least that a decoder must fill for the same prompt. Raw is its type of a value left as it stands.
type minimal[Raw ~[]byte] struct {
	Model string `json:"model"`
	Tools Raw    `json:"tools"`

	Messages []struct {
		Role    string `json:"role"`
		Content Raw    `json:"content"`
	} `json:"messages"`
	MaxTokens int  `json:"max_tokens"`
	Stream    bool `json:"stream"`
}

// BenchmarkParse is a body to its chain, beside its scan alone and beside libraries, each of which does the least that
// could tell where the parts stand: they find them, as the scan does, and hash nothing.
func BenchmarkParse(b *testing.B) {
	peers := []struct {
		name string
		read func(body []byte) (messages int, err error)
	}{
		{"encoding-json", func(body []byte) (int, error) {
			var m minimal[json.RawMessage]
			err := json.Unmarshal(body, &m)
			return len(m.Messages), err
		}},
		{"json-v2", func(body []byte) (int, error) { // as lax as a server is
			var m minimal[jsontext.Value]
			err := jsonv2.Unmarshal(body, &m, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
			return len(m.Messages), err
		}},
		{"goccy", func(body []byte) (int, error) {
			var m minimal[json.RawMessage]
			err := goccy.UnmarshalOf(body, &m, goccy.DecodeNoCopyString())
			return len(m.Messages), err
		}},
	}
	for _, size := range []int{1 << 10, 128 << 10, 1 << 20, 10 << 20, 32 << 20} {
		bodies := benchBodies(size)
		for _, kind := range []string{"plain", "breaks", "escaped"} {
			body := bodies[kind]
			name := fmt.Sprintf("chat/%dKiB/%s/", size>>10, kind)
			var p Parser
			b.Run(name+"weir", func(b *testing.B) {
				var dst Prompt
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					p.Parse(&dst, Input{Path: chatPath, Body: body})
				}
				if dst.Reason != ReasonNone || dst.Tokens == 0 {
					b.Fatalf("read as %+v", dst)
				}
			})
			b.Run(name+"weir-scan", func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					var m members
					p.scan.reset(body, false)
					if p.body(&m) != ReasonNone || !m.own {
						b.Fatal(p.scan.reason)
					}
				}
			})
			if size > 128<<10 {
				continue
			}
			for _, peer := range peers {
				b.Run(name+peer.name, func(b *testing.B) {
					b.SetBytes(int64(len(body)))
					b.ReportAllocs()
					for b.Loop() {
						if n, err := peer.read(body); err != nil || n != 2 {
							b.Fatal(n, err)
						}
					}
				})
			}
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
		p.Parse(&dst, Input{Path: "/v1/chat/completions", Body: body})
	}
}
