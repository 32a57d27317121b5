package prompt

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestLargeBodies is llama.cpp PR#27434: a million of anything, in 10 MB, take eight times as long as an eighth of them,
// and memory of twice their bytes at most.
func TestLargeBodies(t *testing.T) {
	const million = 1_000_000
	for name, c := range map[string]struct {
		path string
		body func(n int) string
		want Reason
	}{
		"a string":              {completionsPath, func(n int) string { return `{"prompt":"` + strings.Repeat("some words", n) + `"}` }, ReasonNone},
		"a string nobody reads": {chatPath, func(n int) string { return `{"messages":[],"x":"` + strings.Repeat("some words", n) + `"}` }, ReasonNone},
		"ids":                   {completionsPath, func(n int) string { return `{"prompt":[` + strings.Repeat("12345678, ", n) + `1]}` }, ReasonNone},
		"prompts":               {completionsPath, func(n int) string { return `{"prompt":[` + strings.Repeat(`"abcdefg",`, n) + `""]}` }, ReasonNone},
		"parts":                 {chatPath, func(n int) string { return chat(`{"content":[` + strings.Repeat(`"abcdefg",`, n) + `""]}`) }, ReasonShape},
		"messages":              {chatPath, func(n int) string { return chat(strings.Repeat(`{"a":"b"},`, n) + `{}`) }, ReasonShape},
		"elements":              {chatPath, func(n int) string { return `{"messages":[],"x":[` + strings.Repeat(`"abcdefg",`, n) + `0]}` }, ReasonNone},
		"elements of tools":     {chatPath, func(n int) string { return `{"messages":[],"tools":[` + strings.Repeat(`"abcdefg",`, n) + `0]}` }, ReasonShape},
		"keys":                  {chatPath, func(n int) string { return `{"messages":[]` + strings.Repeat(`,"key":123`, n) + `}` }, ReasonNone},
		"keys of a message":     {chatPath, func(n int) string { return chat(`{"a":1` + strings.Repeat(`,"key":123`, n) + `}`) }, ReasonNone},
		"keys of tools":         {chatPath, func(n int) string { return `{"messages":[],"tools":{"a":1` + strings.Repeat(`,"key":123`, n) + `}}` }, ReasonNone},
	} {
		in, eighth := Input{Path: c.path, Body: []byte(c.body(million))}, Input{Path: c.path, Body: []byte(c.body(million / 8))}
		if size := len(in.Body); size < 9*million || size > 12*million {
			t.Fatalf("%s: %d bytes", name, size)
		}
		got := holdMemory(t, name, in)
		if got.Reason != c.want || got.Tokens == 0 {
			t.Errorf("%s: %v with %d tokens, want %v", name, got.Reason, got.Tokens, c.want)
		}
		holdRatio(t, name, 24, func() { read(in) }, func() { read(eighth) })
	}
}

// TestLongPrompts is llm-d-router#1906: a prompt of 128k tokens, in 600 kB, costs less than encoding/json takes to find
// its parts.
func TestLongPrompts(t *testing.T) {
	bodies := benchBodies(600_000)
	for name, share := range map[string]float64{"plain": 0.25, "breaks": 0.5, "escaped": 1} {
		in := Input{Path: chatPath, Body: bodies[name]}
		if got := holdMemory(t, name, in); got.Reason != ReasonNone || got.Tokens < 40_000 {
			t.Errorf("%s: %v with %d tokens", name, got.Reason, got.Tokens)
		}
		holdRatio(t, name, share, func() { read(in) }, func() {
			var m minimal[json.RawMessage]
			if err := json.Unmarshal(in.Body, &m); err != nil || len(m.Messages) != 2 {
				t.Fatal(err)
			}
		})
	}
}

// holdMemory reads a body with a parser that has read nothing before, and holds that it allocates at most twice the body.
func holdMemory(t *testing.T, name string, in Input) Prompt {
	t.Helper()
	var p Parser
	var dst Prompt
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p.Parse(&dst, in)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > uint64(2*len(in.Body)) {
		t.Errorf("%s: %d bytes are read with %d allocated", name, len(in.Body), n)
	}
	return dst
}

// holdRatio holds that f takes at most ratio times as long as beside does, in the best of some tries of both.
func holdRatio(t *testing.T, name string, ratio float64, f, beside func()) {
	t.Helper()
	took := func(f func()) time.Duration {
		start := time.Now()
		f()
		return time.Since(start)
	}
	a, b := took(f), took(beside)
	for try := 0; a.Seconds() > ratio*max(b, 20*time.Microsecond).Seconds(); try++ {
		if try == 5 {
			t.Errorf("%s takes %v, and what it is held to %v", name, a, b)
			return
		}
		a, b = min(a, took(f)), min(b, took(beside))
	}
}

func read(in Input) {
	var p Parser
	var dst Prompt
	p.Parse(&dst, in)
}
