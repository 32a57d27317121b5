package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
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

// drawn repeats what draw writes up to n bytes, and leaves no draw half.
func drawn(n int, draw func(r *rand.Rand) string) string {
	var b strings.Builder
	r := rand.New(rand.NewPCG(21, 22))
	for {
		s := draw(r)
		if b.Len()+len(s) > n {
			return b.String()
		}
		b.WriteString(s)
	}
}

// ascii is a string's raw text as Python's json.dumps writes it, with an escape for every character beyond ASCII.
func ascii(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		if u < utf8.RuneSelf {
			b.WriteByte(byte(u))
		} else {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
	}
	return b.String()
}

// arguments is a tool call's arguments, JSON in a string: a path, and a file of lines with quotes of their own.
func arguments(r *rand.Rand) string {
	var file strings.Builder
	for range r.IntN(8) {
		fmt.Fprintf(&file, "\tlog.Printf(\"%d of %d\", n)\n", r.IntN(1000), r.IntN(10))
	}
	inner, _ := json.Marshal(map[string]any{"path": fmt.Sprintf("src/file%d.go", r.IntN(1000)), "limit": r.IntN(100), "recursive": r.IntN(2) == 0, "content": file.String()})
	outer, _ := json.Marshal(string(inner))
	return string(outer[1 : len(outer)-1])
}

// letters are n of them from first on, drawn from the given number.
func letters(r *rand.Rand, first rune, number, n int) string {
	s := make([]rune, n)
	for i := range s {
		s[i] = first + rune(r.IntN(number))
	}
	return string(s)
}

// chatBody is a chat body whose system message has the given raw text.
func chatBody(text string) []byte {
	return []byte(`{"model":"meta-llama/Llama-3.1-8B-Instruct","messages":[{"role":"system","content":"` + text +
		`"},{"role":"user","content":"Which of these is right?"}],"max_tokens":256,"stream":true}`)
}

// benchBodies are chat bodies of a given size: text with line breaks, text without an escape, and text in
// which every character is one.
func benchBodies(size int) map[string][]byte {
	dense := strings.Repeat(`\u4f60\u597d\"`, size/14)
	return map[string][]byte{"breaks": chatBody(words(size, `\n`)), "plain": chatBody(words(size, " ")), "escaped": chatBody(dense)}
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

// BenchmarkEscapes is a body to its chain for 128 KiB of each kind of escapes that clients send: what json.dumps makes of
// Chinese, of Russian, of German and of emoji, and JSON in a string. Beside it stands the scan alone, and xxhash over
// what the text stands for, which no reader of it could beat.
func BenchmarkEscapes(b *testing.B) {
	for _, kind := range []struct {
		name string
		draw func(r *rand.Rand) string
	}{
		{"chinese", func(r *rand.Rand) string { return ascii(letters(r, 0x4E00, 0x5000, 1)) }},
		{"russian", func(r *rand.Rand) string { return ascii(letters(r, 0x430, 32, 1+r.IntN(9))) + " " }},
		{"german", func(r *rand.Rand) string { return ascii(letters(r, 'a', 26, r.IntN(24)) + letters(r, 0xE4, 25, 1)) }},
		{"emoji", func(r *rand.Rand) string { return ascii(letters(r, 0x1F600, 80, 1)) }},
		{"nested", arguments},
	} {
		text := drawn(128<<10, kind.draw)
		body := chatBody(text)
		meant := make([]byte, len(text)+maxStep)
		n, used := decode(meant, []byte(text))
		if used != len(text) {
			b.Fatalf("%s: %d of %d bytes decoded", kind.name, used, len(text))
		}
		var p Parser
		var dst Prompt
		for _, step := range []struct {
			name string
			run  func() bool
		}{
			{"weir", func() bool {
				p.Parse(&dst, Input{Path: chatPath, Body: body})
				return dst.Reason == ReasonNone
			}},
			{"weir-scan", func() bool {
				var m members
				p.scan.reset(body, false)
				return p.body(&m) == ReasonNone
			}},
			{"xxhash", func() bool { return xxhash.Sum64(meant[:n]) != 0 }},
		} {
			b.Run(kind.name+"/"+step.name, func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if !step.run() {
						b.Fatal("not read")
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
		p.Parse(&dst, Input{Path: "/v1/chat/completions", Body: body})
	}
}
