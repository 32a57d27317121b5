package prompt

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

// seeds are bodies that reach every branch of the parser.
var seeds = []string{
	`{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":16,"stream":true}`,
	`{"messages":[{"content":[{"type":"text","text":"a"},"b",null,5,{"type":"image_url","image_url":{"url":"data:,x"}},{"x":1}],"role":"user"}]}`,
	`{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"q\":1}"}},7,{"function":"g"}]},{"role":"tool","tool_call_id":"c","content":"42","name":"f"}]}`,
	`{"tools":[{"type":"function","function":{"name":"f","parameters":{"a":[1,-2.5e3,true,null,{}]}}}],"messages":[{"role":null,"reasoning":"r","reasoning_content":"s"}]}`,
	`{"model":"m","prompt":"alpha beta","max_tokens":1.5,"max_completion_tokens":7}`,
	`{"model":"m","prompt":["alpha beta","gamma"],"cache_salt":"s"}`,
	`{"prompt":[101,102,4294967295]}`,
	`{"prompt":[[1,2],[3],"x"]}`,
	`{"prompt":[],"messages":[]}`,
	`{"prompt":["a","b","c"],"n":3,"best_of":5}`,
	`{"messages":[],"n":300,"best_of":"5"}`,
	`{"prompt":[1,"a"]}`,
	"\xEF\xBB\xBF" + ` { "mod\u0065l" : "\ud83d\ude00\ud83d\u00e9\/" , "prompt" : "a` + "\xff\xfe" + `b\\\"\n\ud83d" } `,
	`{"model":"m","model":"n","messages":"x","messages":[{"role":"a","role":"b","content":["x"],"content":"y"}]}`,
	`{"a":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]],"prompt":{"x":"}"}}`,
	`{"messages":[5]}`,
	`[]`,
}

// compare holds what the parser makes of a valid JSON body against the reference.
func compare(t *testing.T, api API, body []byte) {
	t.Helper()
	path := map[API]string{APIChat: chatPath, APICompletions: completionsPath}[api]
	want := reference(api, body)
	got := parse(path, string(body))
	if want.Reason == ReasonNone {
		want.Chain = chainOf(want.seed, append(slices.Clone(want.stream), make([]byte, 256)...))
	}
	if !slices.Equal(got.Chain, want.Chain) {
		t.Errorf("chain %x, want %x for %q", got.Chain, want.Chain, want.stream)
	}
	got.Chain, want.Chain = nil, nil
	if got.API != want.API || got.Model != want.Model || got.Tokens != want.Tokens || got.MaxTokens != want.MaxTokens ||
		got.Prompts != want.Prompts || got.Answers != want.Answers || got.Stream != want.Stream || got.Reason != want.Reason {
		t.Errorf("read as %+v, want %+v", got, want.Prompt)
	}
}

// FuzzParse holds every input against the reference where that can judge it, and asks of all others that they
// are read without a panic and estimated within bounds.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add(true, []byte(s))
		f.Add(false, []byte(s))
	}
	f.Fuzz(func(t *testing.T, chat bool, body []byte) {
		api, path := APICompletions, completionsPath
		if chat {
			api, path = APIChat, chatPath
		}
		if json.Valid(bytes.TrimPrefix(body, bom)) {
			compare(t, api, body)
			return
		}
		got := parse(path, string(body))
		if got.Reason != ReasonNone && (got.Tokens > (len(body)+3)/4 || got.Tokens == 0 && len(body) > 0) {
			t.Errorf("%d bytes counted as %d tokens", len(body), got.Tokens)
		}
	})
}
