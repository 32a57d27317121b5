package prompt

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
)

func responses(members string) string { return `{"model":"m",` + members + `}` }

// anthropic is a body of model m with the given messages.
func anthropic(messages string) string { return `{"model":"m","messages":[` + messages + `]}` }

// TestAnthropicIsReadAsTheServerDoes: what vLLM drops or joins leaves no trace, and what it renders does.
func TestAnthropicIsReadAsTheServerDoes(t *testing.T) {
	const ask = `"messages":[{"role":"user","content":"q"}]`
	result := func(content string) string {
		return anthropic(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":` + content + `},{"type":"text","text":"go"}]}`)
	}
	call := func(input string) string {
		return anthropic(`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f"` + input + `}]}`)
	}
	tool := func(more string) string {
		return `{"model":"m",` + ask + `,"tools":[{"name":"f","input_schema":{"type":"object"}` + more + `}]}`
	}
	for _, same := range [][]string{
		{
			`{"model":"m","system":"ab",` + ask + `}`,
			`{"model":"m",` + ask + `,"system":[{"type":"text","text":"a"},{"text":"b","type":"text","cache_control":{"type":"ephemeral"}}]}`,
			`{"model":"m",` + ask + `,"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1f"},{"type":"text","text":""},{"type":"text","text":"ab"}]}`,
			`{"model":"m",` + ask + `,"system":[{"type":"text","text":"x\u002danthropic-billing-header"},{"type":"text","text":"ab"}]}`,
		},
		{`{"model":"m",` + ask + `}`, `{"model":"m","system":"",` + ask + `}`, `{"model":"m","system":[],` + ask + `,"tools":[]}`, `{"model":"m","system":null,` + ask + `,"tools":null}`},
		{
			anthropic(`{"role":"user","content":"q"}`), anthropic(`{"role":"user","content":[{"type":"text","text":"q"}]}`),
			anthropic(`{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"q"},{"type":"text","text":null}]},{"role":"user","content":[]}`),
		},
		{result(`"1\n2"`), result(`[{"type":"text","text":"1"},{"type":"text","text":"2"}]`)},
		{result(`""`), result(`null`), result(`[]`), strings.Replace(result(``), `,"content":}`, `}`, 1)},
		{result(`"1"`), anthropic(`{"role":"user","content":[{"type":"text","text":"go"},{"content":"1","tool_use_id":"c","type":"tool_result","is_error":false}]}`)},
		{call(``), call(`,"input":{}`), call(`,"input":null`), call(`,"input":{ }`)},
		{
			anthropic(`{"role":"assistant","content":[{"type":"thinking","thinking":"ab","signature":"s"},{"type":"text","text":"c"}]}`),
			anthropic(`{"role":"assistant","content":[{"type":"thinking","thinking":"a"},{"type":"redacted_thinking","data":"zz"},{"type":"thinking","thinking":"b"},{"type":"text","text":"c"}]}`),
		},
		{
			anthropic(`{"role":"system","content":"ab"},{"role":"user","content":"q"}`),
			anthropic(`{"role":"system","content":[{"type":"text","text":"x-anthropic-billing-header"},{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"user","content":"q"}`),
			anthropic(`{"role":"system","content":"x-anthropic-billing-header: 1"},{"role":"system","content":"ab"},{"role":"user","content":"q"},{"role":"system","content":""}`),
		},
		{tool(``), tool(`,"cache_control":{"type":"ephemeral"}`), tool(`,"type":"custom","strict":null`)},
	} {
		for _, b := range same[1:] {
			sameChain(t, messagesPath, same[0], b)
		}
	}
	different := []string{
		anthropic(`{"role":"user","content":"q"}`), `{"model":"m","system":"q","messages":[]}`, result(`"1"`), result(`"1\n"`), result(`"2"`),
		result(`[{"type":"text","text":"1"},{"type":"image","source":{"data":"x"}}]`), result(`[{"type":"text","text":"1"},{"type":"image","source":{"data":"y"}}]`),
		strings.Replace(result(`"1"`), `"c"`, `"d"`, 1), call(``), call(`,"input":{"q":1}`), call(`,"input":{"q":2}`),
		anthropic(`{"role":"assistant","content":[{"type":"thinking","thinking":"q"}]}`), anthropic(`{"role":"assistant","content":"q"}`),
		anthropic(`{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"x"}}]}`), anthropic(`{"role":"user","content":[{"type":"document","source":{"type":"base64","data":"y"}}]}`),
		tool(``), tool(`,"description":"d"`), tool(`,"strict":true`), tool(`,"defer_loading":true`),
	}
	for i, a := range different {
		for _, b := range different[i+1:] {
			otherChain(t, messagesPath, a, b)
		}
	}
}

// TestResponsesAreReadAsTheServerDoes: spellings that the server renders alike, and those that it does not.
func TestResponsesAreReadAsTheServerDoes(t *testing.T) {
	path := paths[APIResponses]
	for _, same := range [][]string{
		{
			responses(`"input":"hi"`), responses(`"input":[{"role":"user","content":"hi"}],"instructions":null`),
			responses(`"instructions":"","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}],"id":"msg_1","status":"completed"}],"previous_response_id":null,"prompt":null,"conversation":null`),
		},
		{responses(`"instructions":"s","input":"hi"`), responses(`"input":[{"role":"system","content":"s"},{"role":"user","content":"hi"}],"tools":[]`)},
		{
			responses(`"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"42"}]`),
			responses(`"input":[{"id":"fc_1","status":"completed","type":"function_call","arguments":"{}","call_id":"c","name":"f"},{"type":"function_call_output","output":[{"type":"input_text","text":"42"}],"call_id":"c"}]`),
		},
		{
			responses(`"input":[{"type":"custom_tool_call","call_id":"c","name":"f","input":"{}"},{"type":"custom_tool_call_output","call_id":"c","output":"42"}]`),
			responses(`"input":[{"id":"ctc_1","input":"{}","call_id":"c","name":"f","type":"custom_tool_call"},{"output":[{"type":"input_text","text":"42"}],"call_id":"c","type":"custom_tool_call_output"}]`),
		},
		{
			responses(`"input":[{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"r"}]}]`),
			responses(`"input":[{"type":"reasoning","summary":[{"type":"summary_text","text":"r"}]}]`),
		},
	} {
		for _, b := range same[1:] {
			sameChain(t, path, same[0], b)
		}
	}
	different := []string{
		responses(`"input":[{"type":"function_call","name":"hi","arguments":"x"}]`), responses(`"input":[{"type":"custom_tool_call","name":"hi","input":"x"}]`),
		responses(`"input":"hi"`), responses(`"instructions":"hi","input":[]`), responses(`"input":[{"role":"developer","content":"hi"}]`),
		responses(`"input":[{"role":"assistant","content":[{"type":"output_text","text":"hi"}]}]`), responses(`"input":[{"type":"function_call","name":"hi"}]`), responses(`"input":[{"type":"function_call","name":"hi","namespace":"a"}]`), responses(`"input":[{"type":"function_call","name":"hi","namespace":"b"}]`),
		responses(`"input":[{"type":"function_call_output","output":"hi"}]`), responses(`"input":[{"type":"reasoning","content":"hi"}]`),
		responses(`"input":[{"type":"web_search_call","id":"1"}]`), responses(`"input":[{"type":"web_search_call","id":"2"}]`),
		responses(`"input":[{"role":"user","content":[{"type":"input_image","image_url":"hi"}]}]`), responses(`"input":[{"role":"user","content":[{"type":"input_file","file_id":"ho"}]}]`),
		responses(`"input":"hi","tools":[{"type":"function","name":"f"}]`),
	}
	for i, a := range different {
		for _, b := range different[i+1:] {
			otherChain(t, path, a, b)
		}
	}
}

// TestStoredPromptsAreNotRead: what the server alone knows stands first, so that a chain of the rest would be wrong.
// On the path of another API they are members without a meaning.
func TestStoredPromptsAreNotRead(t *testing.T) {
	for _, member := range []string{
		`"previous_response_id":"resp_1","input":"hi"`, `"input":"hi","conversation":"conv_1"`, `"conversation":{"id":"conv_1"},"input":"hi"`,
		`"prompt":{"id":"pmpt_1"},"input":"hi"`, `"prompt":{"id":"pmpt_1"}`, `"input":[{"role":"user","content":"hi"},{"type":"item_reference","id":"msg_1"}]`,
	} {
		for _, partial := range []bool{false, true} {
			var p Parser
			var got Prompt
			body, want := responses(`"max_output_tokens":5,"stream":true,`+member), 3 // FF M user FF X hi
			if !strings.Contains(member, "hi") {
				want = (len(body) + 3) / 4
			}
			p.Parse(&got, Input{Path: paths[APIResponses], Body: []byte(body), Partial: partial})
			if got.Reason != ReasonStored || len(got.Chain) != 0 || got.Tokens != want || got.Model != "m" || got.MaxTokens != 5 || !got.Stream {
				t.Errorf("%s: %+v", member, got)
			}
		}
	}
	sameChain(t, chatPath, chat(`{"content":"x"}`), `{"model":"m","previous_response_id":"r","conversation":"c","messages":[{"content":"x"}]}`)
}

// TestReadByWhatTheBodyHasAnywhere: each shape at the path of each API has a chain, which is that of its own API where the
// two do not both read it.
func TestReadByWhatTheBodyHasAnywhere(t *testing.T) {
	said := strings.Repeat("what is said in all of them. ", 40)
	for shape, body := range map[API]string{
		APIChat:        `{"model":"m","messages":[{"role":"user","content":"` + said + `"}]}`,
		APICompletions: `{"model":"m","prompt":"` + said + `"}`,
		APIResponses:   `{"model":"m","input":"` + said + `"}`,
		APIEmbeddings:  `{"model":"m","input":["` + said + `"]}`,
	} {
		want := parse(paths[shape], body)
		if want.Reason != ReasonNone || len(want.Chain) < 5 {
			t.Errorf("%v: %+v", shape, want)
		}
		for _, api := range apis {
			got := parse(paths[api], body)
			if input := shape == APIResponses || shape == APIEmbeddings; input && api != shape {
				if got.Reason != ReasonNone && got.Reason != ReasonShape {
					t.Errorf("%v at %v: %v", shape, api, got.Reason)
				}
			} else if got.Reason != ReasonNone || got.API != api || !slices.Equal(got.Chain, want.Chain) {
				t.Errorf("%v at %v: %+v", shape, api, got)
			}
		}
	}
}

// TestEmbeddings: llm-d/llm-d-router#1062, the embeddings half.
func TestEmbeddings(t *testing.T) {
	path := paths[APIEmbeddings]
	for input, want := range map[string]Prompt{
		`"alpha beta"`: {Tokens: 3, Prompts: 1}, `[1,2,3,4]`: {Tokens: 4, Prompts: 1, Exact: true}, `["a","b","c"]`: {Tokens: 3, Prompts: 3},
		`[[1,2],[3]]`: {Tokens: 3, Prompts: 2, Exact: true}, `[{"role":"user","content":"hi"}]`: {Tokens: 3, Prompts: 1},
	} {
		got := parse(path, `{"model":"m","n":3,"input":`+input+`}`)
		if got.Tokens != want.Tokens || got.Prompts != want.Prompts || got.Exact != want.Exact || got.Reason != ReasonNone || !got.Silent || got.Answers != 1 {
			t.Errorf("%s: %+v", input, got)
		}
	}
	text := strings.Repeat("x", 1000)
	if got, want := parse(path, `{"model":"m","input":"`+text+`"}`), parse(completionsPath, `{"model":"m","prompt":"`+text+`"}`); !slices.Equal(got.Chain, want.Chain) {
		t.Errorf("chains %x and %x", got.Chain, want.Chain)
	}
	sameChain(t, path, chat(`{"role":"user","content":"hi"}`), `{"model":"m","input":[{"role":"user","content":"hi"}]}`)
}

// TestSilent: what asks for no answer.
func TestSilent(t *testing.T) {
	for _, c := range []struct {
		in   Input
		want bool
	}{
		{Input{Path: chatPath, Body: []byte(`{}`)}, false},
		{Input{Path: chatPath}, false},
		{Input{Path: messagesPath, Size: 9, Unread: ReasonMode}, false},
		{Input{Path: paths[APICount], Size: 9, Unread: ReasonMode}, true},
		{Input{Path: paths[APIEmbeddings], Body: []byte(`[`)}, true},
		{Input{Path: "/v1/models"}, true},
		{Input{Path: "/v1/models", Unread: ReasonMode}, false}, // its body is not shown
		{Input{Path: "/generate", Body: []byte(`{}`)}, false},
		{Input{Path: "/v1/audio/transcriptions", Size: 9, Unread: ReasonMode}, false},
		{Input{Path: "/v1/rerank/?x", Body: []byte(`{}`)}, true},
		{Input{Path: "/score", Body: []byte(`{}`)}, true},
		{Input{Path: "/generative_scoring", Body: []byte(`{}`)}, true},
		{Input{Path: "/v1/chat/completions/render", Body: []byte(`{}`)}, true},
		{Input{Path: "/underscore", Body: []byte(`{}`)}, false},
	} {
		var p Parser
		var got Prompt
		if p.Parse(&got, c.in); got.Silent != c.want {
			t.Errorf("%+v: silent %v", c.in, got.Silent)
		}
	}
}

// TestCacheKey is read as model is, but for one that is too long.
func TestCacheKey(t *testing.T) {
	for member, want := range map[string]string{
		``: "", `"prompt_cache_key":"k",`: "k", `"prompt_cache_key":null,`: "", `"prompt_cache_key":5,`: "", `"Prompt_cache_key":"k",`: "",
		`"prompt_cache_key":"\u006b","prompt_cache_key":"l",`: "l", `"prompt_cache_key":"` + strings.Repeat("k", MaxNameBytes+1) + `",`: "",
	} {
		for api, body := range map[API]string{APIChat: `"messages":[]`, APIResponses: `"input":""`, APIMessages: `"messages":[]`} {
			if got := parse(paths[api], "{"+member+body+"}"); got.CacheKey != want || got.Reason != ReasonNone {
				t.Errorf("%v, %.40s: key %q (%v), want %q", api, member, got.CacheKey, got.Reason, want)
			}
		}
	}
}

// TestToolsPosition: what stands before the tools is shared by prompts with other tools, and nothing behind them.
func TestToolsPosition(t *testing.T) {
	long := func(c string) string { return strings.Repeat(c, 4*chain.BlockBytes) }
	body := func(tool string) []byte {
		return []byte(`{"model":"m","tools":["` + tool + long("t") + `"],"messages":[{"role":"s\u0079stem","content":"` + long("s") + `"},{"role":"developer","content":"` + long("d") +
			`"},{"role":"user","content":"` + long("u") + `"},{"role":"system","content":"` + long("v") + `"},{"content":"` + long("w") + `","role":"us\u0065r"},{"role":"assistant","content":"` + long("x") + `"}]}`)
	}
	for at, want := range map[ToolsPosition]int{ToolsFirst: 0, ToolsAfterSystem: 8, "": 8, ToolsBeforeLastUser: 16} {
		var p Parser
		var a, b Prompt
		tools := map[string]ToolsPosition{"m": at, "other": ToolsFirst}
		p.Parse(&a, Input{Path: chatPath, Body: body("a"), Tools: tools})
		p.Parse(&b, Input{Path: chatPath, Body: body("b"), Tools: tools})
		same := 0
		for i := range a.Chain {
			if a.Chain[i] == b.Chain[i] {
				same++
			}
		}
		if same != want || len(a.Chain) != 28 {
			t.Errorf("%q: %d of %d blocks are shared, want %d", at, same, len(a.Chain), want)
		}
		if err := at.Validate(); (err == nil) == (at == "") {
			t.Errorf("%q: %v", at, err)
		}
	}
	if err := ToolsPosition("last").Validate(); err == nil || err.Error() != `"last" is none of first, after_system, before_last_user` {
		t.Error(err)
	}
}

// TestWhatIsCountedIsBounded: what a client writes must not look like more work than it can be.
func TestWhatIsCountedIsBounded(t *testing.T) {
	var p Parser
	var got Prompt
	for path, body := range map[string]string{
		chatPath:        `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 6<<20) + `"}]}`,
		completionsPath: `{"prompt":"` + strings.Repeat("x", 6<<20) + `"}`,
	} {
		if p.Parse(&got, Input{Path: path, Body: []byte(body)}); got.Tokens != MaxTextTokens || got.Reason != ReasonNone {
			t.Errorf("%s: %d tokens, %v", path, got.Tokens, got.Reason)
		}
	}
	for _, path := range []string{messagesPath, paths[APIResponses], paths[APIEmbeddings]} {
		body := `{"n":128,"best_of":128,"input":"x","messages":[{"role":"user","content":"x"}]}`
		if p.Parse(&got, Input{Path: path, Body: []byte(body)}); got.Answers != 1 {
			t.Errorf("%s: %d answers", path, got.Answers)
		}
	}
}

// TestLastMessagesWin: messages that a later member takes the place of are as if they had never been.
func TestLastMessagesWin(t *testing.T) {
	many := strings.Repeat(`{"role":"user","content":"x"},`, MaxParts/2)
	one := `[{"role":"user","content":"hello"}]`
	for _, path := range []string{chatPath, messagesPath} {
		var p Parser
		var got, want Prompt
		p.Parse(&want, Input{Path: path, Body: []byte(`{"messages":` + one + `}`)})
		p.Parse(&got, Input{Path: path, Body: []byte(`{"messages":[` + many + `{}],"messages":` + one + `}`)})
		if got.Reason != ReasonNone || got.Tokens != want.Tokens {
			t.Errorf("%s: %v, %d tokens, want %d", path, got.Reason, got.Tokens, want.Tokens)
		}
	}
}

// TestSystemHasNoResults: a result of a tool in an Anthropic system prompt is ignored, wherever the system stands.
func TestSystemHasNoResults(t *testing.T) {
	const system, messages = `"system":[{"type":"text","text":"a"},{"type":"tool_result","content":"zz"}]`, `"messages":[{"role":"user","content":"x"}]`
	a, b := parse(messagesPath, `{`+system+`,`+messages+`}`), parse(messagesPath, `{`+messages+`,`+system+`}`)
	c := parse(messagesPath, `{"system":"a",`+messages+`}`)
	if a.Tokens != c.Tokens || b.Tokens != c.Tokens {
		t.Errorf("%d and %d tokens, without it %d", a.Tokens, b.Tokens, c.Tokens)
	}
}
