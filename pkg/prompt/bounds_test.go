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
	for path, body := range map[string]string{
		messagesPath + "?1":        `{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"source":%s}]}]}]}`,
		messagesPath + "?2":        `{"messages":[],"tools":[{"name":"f","input_schema":%s}]}`,
		messagesPath + "?3":        `{"messages":[],"system":[{"type":"text","text":%s}]}`,
		paths[APIResponses] + "?1": `{"input":[{"role":"user","content":[{"text":%s}]}]}`,
		paths[APIResponses] + "?2": `{"input":[{"type":"function_call","arguments":%s}]}`,
		paths[APIEmbeddings]:       `{"input":[%s]}`,
	} {
		for n, want := range map[int]bool{40: false, MaxDepth + 1: true, 100_000: true} {
			if got := parse(path, fmt.Sprintf(body, nest(n))); (got.Reason == ReasonDepth) != want {
				t.Errorf("%s, %d deep: %v", body, n, got.Reason)
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
		if p.Parse(&got, Input{Path: chatPath, Body: []byte(body)}); got.Reason != want {
			t.Errorf("%.40s... of %d bytes: %v, want %v", body, len(body), got.Reason, want)
		}
		if kept := max(cap(p.fields), cap(p.parts), cap(p.calls)); kept > MaxParts*3/2 {
			t.Errorf("%.40s... leaves memory for %d parts", body, kept)
		}
	}
}

// TestPartsOfOtherShapesAreBounded wherever a body has a list.
func TestPartsOfOtherShapesAreBounded(t *testing.T) {
	many := func(one string) string { return strings.Repeat(one+",", MaxParts) + one }
	for name, body := range map[string]string{
		"system":   `{"system":[` + many(`{"type":"text","text":"x"}`) + `],"messages":[]}`,
		"tools":    `{"tools":[` + many(`{}`) + `],"messages":[]}`,
		"as many":  `{"tools":[{}` + strings.Repeat(`,{}`, MaxParts-1) + `],"messages":[]}`,
		"behind":   `{"messages":[],"tools":[{}` + strings.Repeat(`,{}`, MaxParts-1) + `]}`,
		"changes":  `{"messages":[{"role":"system","content":[` + many(`{"type":"tool_addition"}`) + `]}]}`,
		"names":    `{"messages":[{"content":[{"type":"tool_result","content":[` + many(`{"type":"tool_reference","name":"x"}`) + `]}]}]}`,
		"messages": `{"messages":[` + many(`{}`) + `]}`,
		"blocks":   `{"messages":[{"content":[` + many(`{"type":"text","text":"x"}`) + `]}]}`,
		"thoughts": `{"messages":[{"content":[` + many(`{"type":"thinking","thinking":"x"}`) + `]}]}`,
		"calls":    `{"messages":[{"content":[` + many(`{"type":"tool_use"}`) + `]}]}`,
		"results":  `{"messages":[{"content":[` + many(`{"type":"tool_result"}`) + `]}]}`,
		"texts":    `{"messages":[{"content":[{"type":"tool_result","content":[` + many(`{"type":"text"}`) + `]}]}]}`,
		"items":    `{"input":[` + many(`{}`) + `]}`,
		"parts":    `{"input":[{"role":"user","content":[` + many(`"x"`) + `]}]}`,
		"outputs":  `{"input":[{"type":"function_call_output","output":[` + many(`"x"`) + `]}]}`,
		"images":   `{"messages":[{"content":[{"type":"tool_result","content":[` + many(`{"type":"image","source":1}`) + `]}]}]}`,
	} {
		var p Parser
		var got Prompt
		path := messagesPath
		if strings.HasPrefix(body, `{"input"`) {
			path = paths[APIResponses]
		}
		if p.Parse(&got, Input{Path: path, Body: []byte(body)}); got.Reason != ReasonShape {
			t.Errorf("%s: %v", name, got.Reason)
		}
		for _, kept := range [][]field{p.head, p.tools, p.fields, p.parts, p.calls, p.thoughts, p.images, p.references, p.changes} {
			if cap(kept) > MaxParts*3/2 {
				t.Errorf("%s: memory for %d parts is kept", name, cap(kept))
			}
		}
	}
}

// TestMediaOfEveryShapeAreBounded: llm-d/llm-d-router#1439. In every shape, 4 MiB inline count as much as a link, and another image
// is another prompt from its block on.
func TestMediaOfEveryShapeAreBounded(t *testing.T) {
	for name, one := range map[string][2]string{
		"image":        {chatPath, `"messages":[{"role":"user","content":[{"type":"text","text":"what is this?"},{"type":"image_url","image_url":{"url":"%s"}}]}]`},
		"audio":        {chatPath, `"messages":[{"role":"user","content":[{"type":"text","text":"what is this?"},{"type":"input_audio","input_audio":{"data":"%s","format":"wav"}}]}]`},
		"file":         {chatPath, `"messages":[{"role":"user","content":[{"type":"text","text":"what is this?"},{"type":"file","file":{"file_data":"%s"}}]}]`},
		"input_image":  {paths[APIResponses], `"input":[{"role":"user","content":[{"type":"input_text","text":"what is this?"},{"type":"input_image","image_url":"%s"}]}]`},
		"input_file":   {paths[APIResponses], `"input":[{"role":"user","content":[{"type":"input_text","text":"what is this?"},{"type":"input_file","filename":"f","file_data":"%s"}]}]`},
		"source":       {messagesPath, `"messages":[{"role":"user","content":[{"type":"text","text":"what is this?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}]`},
		"document":     {messagesPath, `"messages":[{"role":"user","content":[{"type":"text","text":"what is this?"},{"type":"document","source":{"type":"base64","data":"%s"}}]}]`},
		"tool's image": {messagesPath, `"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"this"},{"type":"image","source":{"data":"%s"}}]}]}]`},
	} {
		body := func(data string) string { return `{"model":"m",` + strings.Replace(one[1], "%s", data, 1) + `}` }
		large, small := parse(one[0], body("data:image/png;base64,"+strings.Repeat("iVBORw0K", 512<<10))), parse(one[0], body("https://host/cat.png"))
		if large.Tokens != small.Tokens || small.Tokens < MediaTokens || small.Tokens > MediaTokens+16 {
			t.Errorf("%s: 4 MiB inline is %d tokens, a link %d, want both near %d", name, large.Tokens, small.Tokens, MediaTokens)
		}
		otherChain(t, one[0], body("https://host/cat.png"), body("https://host/dog.png"))
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
		"items": func(n int) string {
			return `{"input":[` + strings.Repeat(`{"role":"user","content":["x"]},`, n/16) + `{}]}`
		},
		"outputs": func(n int) string {
			return `{"input":[` + strings.Repeat(`{"type":"function_call_output","output":[1]},`, n/16) + `{}]}`
		},
		"blocks": func(n int) string {
			return anthropic(`{"content":[` + strings.Repeat(`{"type":"tool_result","content":[{}]},`, n/16) + `1]}`)
		},
		"unknown": func(n int) string { return anthropic(`{"content":[` + strings.Repeat(`{"type":"x"},`, n/8) + `1]}`) },
		"refilled": func(n int) string {
			return anthropic(`{"x":1` + strings.Repeat(`,"content":[{"type":"text","text":"x"}]`, n/16) + `}`)
		},
		"cut": func(n int) string { return `{"model":"` + strings.Repeat(`\`, n) },

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
		for _, path := range []string{chatPath, messagesPath, paths[APIResponses]} {
			ratio := fastest(path, b).Seconds() / max(fastest(path, a), 20*time.Microsecond).Seconds()
			if ratio > 48 {
				t.Errorf("%s: eight times the body takes %.0f times as long", name, ratio)
			}
		}
	}
}

// fastest is the least of several times for reading body.
func fastest(path string, body []byte) time.Duration {
	var p Parser
	var dst Prompt
	best := time.Hour
	for range 5 {
		start := time.Now()
		p.Parse(&dst, Input{Path: path, Body: body, Partial: true})
		best = min(best, time.Since(start))
	}
	return best
}
