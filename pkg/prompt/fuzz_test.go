package prompt

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
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

// shapeSeeds are bodies of other shapes than a chat's, bodies with all that tells how to render them, and bodies that are cut.
var shapeSeeds = []string{
	`{"model":"m","input":"hi","instructions":"be brief","max_output_tokens":7,"prompt_cache_key":"k"}`,
	`{"input":[{"role":"developer","content":"d"},{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"u"},{"type":"input_file","file_id":"f"}]},{"type":"reasoning","summary":[{"text":"s"}],"content":[{"type":"reasoning_text","text":"r"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"42"},{"type":"web_search_call"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}],"tools":[{"type":"function","name":"f"}]}`,
	`{"input":[{"type":"item_reference","id":"x"}]}`,
	`{"input":"x","previous_response_id":"r"}`,
	`{"input":"x","prompt":{"id":"p"},"conversation":""}`,
	`{"input":[[1,2],"x"],"model":"m"}`,
	`{"model":"m","max_tokens":9,"system":[{"type":"text","text":"x-anthropic-billing-header: 1"},{"type":"text","text":"a"},{"type":"text","text":""},{"type":"text","text":"b"}],"messages":[{"role":"user","content":[{"type":"text","text":"q"},{"type":"image","source":{"type":"base64","data":"x"}}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"thinking","thinking":"u"},{"type":"redacted_thinking","data":"z"},{"type":"tool_use","id":"c","name":"f","input":{"q":1}},{"type":"tool_use","name":"g","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"4"},{"type":"image","source":{}},{"type":"text","text":"2"}]},{"type":"text","text":""},{"type":"text","text":"go"}]}],"tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"cache_control":{}}]}`,
	`{"system":"s","messages":[{"role":"system","content":"t"},{"role":"system","content":[{"type":"text","text":"u"},{"type":"text","text":"v"}]},{"role":"user","content":[]},{"role":"user","content":""},{"role":"user","content":[{"type":"tool_result","content":"4"}]},{"content":[{"type":"blob"},"x"]}],"tools":"none"}`,
	`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"}],"tools":[{"name":"f"}]}`,
	`{"messages":[{"role":"system","content":"x-anthropic-billing-header: 1\\n\nt"},{"role":"system","content":["x-anthropic-billing-header\u000A",""]},{"role":"developer","content":"","tools":[{"name":"f"}]},{"role":"user","content":{"type":"video_url","video_url":{"url":"u","detail":1},"uuid":"v"}}],"documents":[{"title":"t","text":"d"}],"add_special_tokens":true,"truncate_prompt_tokens":1000,"chat_template":"{{x}}","chat_template_kwargs":{"b":[1,{}],"a":{"c":null}},"reasoning_effort":"low","mm_processor_kwargs":{"a":1},"media_io_kwargs":{"video":{"fps":1}},"max_tokens":0}`,
	`{"input":[{"role":"system","content":[{"type":"input_text","text":"x-anthropic-billing-header"}]},{"role":"user","content":[{"type":"image_embeds","image_embeds":{"b":"x","a":[]}},{"type":"prompt_embeds","data":"d"},{"type":"tool_reference","name":"f"},{"type":"file","file":{"file_data":"x","file_id":"y"}},{"type":"refusal","refusal":"no","text":"x"}]},{"type":"computer_call_output","output":{"image_url":"u"}}],"reasoning":{"effort":"high","summary":"auto"},"previous_response_id":"r"}`,
	`{"system":"x-anthropic-billing-header: 1\na","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"tool_reference","tool_name":"","name":"f"},{"type":"document","source":{"type":"url","url":"u"}}]}]},{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_reference","name":"f"}},{"type":"text","text":"a"}]},{"role":"user","content":{"type":"image","source":{"url":null}}}],"thinking":{"type":"disabled"},"output_config":{"effort":"low"},"tools":[{"function":{"name":"f","parameters":{"a":1}},"defer_loading":true},{"name":"g","input_schema":{},"strict":true},{"type":"web_search"},5]}`,
	`{"messages":[{"role":"system","content":"s"},{"role":"assistant","content":"cut in the mid`,
	`{"prompt":[1,2,3`,
	`{"prompt":["a\\u00`,
	`{"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"cu`,
}

// paths is where each API is asked for.
var paths = map[API]string{
	APIChat: chatPath, APICompletions: completionsPath, APIResponses: "/v1/responses", APIMessages: messagesPath,
	APICount: "/v1/messages/count_tokens", APIEmbeddings: "/v1/embeddings",
}

// positions are those of tools, and none.
var positions = []ToolsPosition{"", ToolsFirst, ToolsAfterSystem, ToolsBeforeLastUser}

// compare holds what the parser makes of a valid JSON body against the reference.
func compare(t *testing.T, api API, at ToolsPosition, body []byte) {
	t.Helper()
	want := reference(api, at, body)
	got := parseAt(paths[api], at, string(body))
	if want.Reason == ReasonNone && !want.truncated {
		want.Chain = chainOf(want.seed, append(slices.Clone(want.stream), make([]byte, 256)...))
	}
	if !slices.Equal(got.Chain, want.Chain) {
		t.Errorf("%v %q: chain of %d, want %d blocks, for %.3000q of %.3000q", api, at, len(got.Chain), len(want.Chain), oneHash(want.stream), body)
	}
	got.Chain, want.Chain = nil, nil
	if got.API != want.API || got.Model != want.Model || got.Tokens != want.Tokens || got.MaxTokens != want.MaxTokens ||
		got.Prompts != want.Prompts || got.Answers != want.Answers || got.Stream != want.Stream || got.Reason != want.Reason ||
		got.Silent != want.Silent || got.CacheKey != want.CacheKey {
		t.Errorf("read as %+v, want %+v", got, want.Prompt)
	}
}

// oneHash is a stream with each medium's hash once.
func oneHash(stream []byte) []byte {
	for i := 0; i+18 <= len(stream); i++ {
		if sum := stream[i+2 : i+10]; stream[i] == mark && stream[i+1] == tagMedia && bytes.Equal(sum, stream[i+10:i+18]) {
			stream = slices.Concat(stream[:i+10], []byte("..."), stream[i+2+MediaTokens*chain.BytesPerToken:])
		}
	}
	return stream
}

// FuzzParse holds every input against the reference where that can judge it, and asks of all others that they
// are read without a panic and estimated within bounds.
func FuzzParse(f *testing.F) {
	for _, s := range slices.Concat(seeds, shapeSeeds) {
		for api := APIChat; api <= APIEmbeddings; api++ {
			f.Add(uint8(api-APIChat), []byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		api := APIChat + API(which%6)
		at := positions[which/6%4]
		if json.Valid(bytes.TrimPrefix(body, bom)) {
			compare(t, api, at, body)
			return
		}
		for _, partial := range []bool{false, true} {
			var p Parser
			var got Prompt
			p.Parse(&got, Input{Path: paths[api], Body: body, Partial: partial, Tools: map[string]ToolsPosition{"": at}})
			if most := len(body) + bytes.Count(body, []byte("{"))*(MediaTokens+16); got.Reason == ReasonStored && got.Tokens > most {
				t.Errorf("%d bytes counted as %d tokens", len(body), got.Tokens)
			}
			if got.Reason != ReasonNone && got.Reason != ReasonStored && (got.Tokens > (len(body)+3)/4 || got.Tokens == 0 && len(body) > 0) {
				t.Errorf("%d bytes counted as %d tokens", len(body), got.Tokens)
			}
			if len(got.Chain)*chain.BlockTokens > got.Tokens {
				t.Errorf("%d blocks of %d tokens", len(got.Chain), got.Tokens)
			}
		}
	})
}
