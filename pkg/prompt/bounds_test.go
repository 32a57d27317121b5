package prompt

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestDepthIsBounded: ggml-org/llama.cpp PR#27434.
func TestDepthIsBounded(t *testing.T) {
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct {
		body   string
		inside int // depth at which %s stands
	}{
		{`{"model":"m","tools":%s,"messages":[]}`, 1},
		{`{"unknown":%s,"messages":[]}`, 1},
		{`{"messages":[{"unknown":%s}]}`, 3},
		{`{"messages":[{"content":[%s]}]}`, 4},
		{`{"messages":[{"content":[{"x":%s}]}]}`, 5},
		{`{"messages":[{"tool_calls":[{"function":{"arguments":%s}}]}]}`, 6},
	} {
		fits := fmt.Sprintf(c.body, nest(MaxDepth-c.inside))
		if got := parse(chatPath, fits); got.Reason != ReasonNone {
			t.Errorf("%s at depth %d: %v", c.body, MaxDepth, got.Reason)
		}
		for _, n := range []int{MaxDepth - c.inside + 1, 100_000} {
			if got := parse(chatPath, fmt.Sprintf(c.body, nest(n))); got.Reason != ReasonDepth {
				t.Errorf("%s %d deeper: %v", c.body, n, got.Reason)
			}
		}
	}
	if got := parse(chatPath, `{"messages":[]`+strings.Repeat(`,"k":[{"a":1}]`, 100_000)+`}`); got.Reason != ReasonNone {
		t.Errorf("a flat object of 100,000 keys: %v", got.Reason)
	}
}

func TestPartsAreBounded(t *testing.T) {
	for body, want := range map[string]Reason{
		chat(strings.Repeat(`{},`, MaxParts-1) + `{}`):                                         ReasonNone,
		chat(strings.Repeat(`{},`, MaxParts) + `{}`):                                           ReasonShape,
		chat(`{"content":[` + strings.Repeat(`"",`, 2*MaxParts) + `""]}`):                      ReasonShape,
		chat(`{"tool_calls":[` + strings.Repeat(`{},`, MaxParts) + `{}]}`):                     ReasonShape,
		chat(`{"content":["a"]},{"tool_calls":[` + strings.Repeat(`{},`, MaxParts-2) + `{}]}`): ReasonShape,
	} {
		var p Parser
		var got Prompt
		if p.Parse(&got, chatPath, "", []byte(body)); got.Reason != want {
			t.Errorf("%.40s... of %d bytes: %v, want %v", body, len(body), got.Reason, want)
		}
		if kept := max(cap(p.fields), cap(p.parts), cap(p.calls)); kept > MaxParts*3/2 {
			t.Errorf("%.40s... leaves memory for %d parts", body, kept)
		}
	}
}

// TestMediaAreBounded: llm-d/llm-d-router#1439.
func TestMediaAreBounded(t *testing.T) {
	image := func(url string) string {
		return chat(`{"role":"user","content":[{"type":"text","text":"what is this?"},{"type":"image_url","image_url":{"url":"` + url + `"}}]}`)
	}
	large, small := parse(chatPath, image("data:image/png;base64,"+strings.Repeat("iVBORw0K", 512<<10))), parse(chatPath, image("https://host/cat.png"))
	if large.Tokens != small.Tokens || small.Tokens < MediaTokens || small.Tokens > MediaTokens+16 {
		t.Errorf("4 MiB inline is %d tokens, a link %d, want both near %d", large.Tokens, small.Tokens, MediaTokens)
	}
	sameChain(t, chatPath, image("https://host/cat.png"), image(`https:\/\/host\/c\u0061t.png`))
	otherChain(t, chatPath, image("https://host/cat.png"), image("https://host/dog.png"))
	unknown := chat(`{"content":[{"type":"blob","blob":"` + strings.Repeat("A", 1<<20) + `"}]}`)
	if got := parse(chatPath, unknown); got.Tokens > MediaTokens+16 {
		t.Errorf("1 MiB in an unknown part is %d tokens", got.Tokens)
	}
	many := parse(chatPath, chat(`{"content":[`+strings.Repeat(`{"file":1},`, 10*MaxMedia)+`{"file":2}]}`))
	if many.Reason != ReasonNone || many.Tokens > MaxMedia*MediaTokens+10*MaxMedia*3+16 {
		t.Errorf("%d media are %d tokens", 10*MaxMedia+1, many.Tokens)
	}
}

// TestWorkIsLinear: eight times the body takes about eight times as long, whatever it is full of. Quadratic
// work would take 64 times.
func TestWorkIsLinear(t *testing.T) {
	for name, f := range map[string]func(n int) string{
		"backslashes": func(n int) string { return `{"prompt":"` + strings.Repeat(`\\`, n) + `"}` },
		"quotes":      func(n int) string { return `{"prompt":"` + strings.Repeat(`\"`, n) + `"}` },
		"open string": func(n int) string { return `{"prompt":"` + strings.Repeat(`\"`, n) },
		"surrogates":  func(n int) string { return `{"prompt":"` + strings.Repeat(`\ud83d`, n/3) + `"}` },
		"marks":       func(n int) string { return `{"prompt":"` + strings.Repeat("\xff\\", n) + `"}` },
		"keys":        func(n int) string { return `{"prompt":"x"` + strings.Repeat(`,"k":[1]`, n/4) + `}` },
		"parts":       func(n int) string { return chat(`{"content":[` + strings.Repeat(`{"x":{}},`, n/4) + `1]}`) },
		"contents":    func(n int) string { return chat(`{"x":1` + strings.Repeat(`,"content":["x"]`, n/8) + `}`) },
		"tools":       func(n int) string { return `{"messages":[],"tools":[` + strings.Repeat(`[],`, n) + `1]}` },
		"batch":       func(n int) string { return `{"prompt":[` + strings.Repeat(`[1],`, n/2) + `"x"]}` },
	} {
		const small = 32 << 10
		a, b := []byte(f(small)), []byte(f(8*small))
		ratio := fastest(b).Seconds() / max(fastest(a), 20*time.Microsecond).Seconds()
		if ratio > 32 {
			t.Errorf("%s: eight times the body takes %.0f times as long", name, ratio)
		}
	}
}

// fastest is the least of several times for reading body.
func fastest(body []byte) time.Duration {
	var p Parser
	var dst Prompt
	best := time.Hour
	for range 5 {
		start := time.Now()
		p.Parse(&dst, chatPath, "", body)
		best = min(best, time.Since(start))
	}
	return best
}
