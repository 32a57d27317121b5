package prompt

import (
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
)

// TestWhatRendersTakesPart: what a body says of how its prompt is rendered tells chains apart, whatever the order of
// its members, and what says nothing leaves no trace.
func TestWhatRendersTakesPart(t *testing.T) {
	said := `{"role":"user","content":"hi"}`
	for path, body := range map[string]func(string) string{
		chatPath:            func(more string) string { return `{"model":"m","messages":[` + said + `]` + more + `}` },
		messagesPath:        func(more string) string { return `{"messages":[` + said + `]` + more + `,"model":"m"}` },
		paths[APIResponses]: func(more string) string { return `{"input":"hi"` + more + `}` },
	} {
		allSame(t, path, body(``), body(`,"documents":null`), body(`,"documents":[]`), body(`,"chat_template":null,"chat_template_kwargs":{}`), body(`,"reasoning_effort":null`),
			body(`,"chat_template":"","add_special_tokens":false`),
			body(`,"reasoning":null`), body(`,"reasoning":{"summary":"auto"}`), body(`,"output_config":{"format":{}}`), body(`,"thinking":{"type":"adaptive"}`),
			body(`,"mm_processor_kwargs":{"a":1}`), body(`,"tool_choice":"none"`), body(`,"thinking":"disabled"`))
		allSame(t, path, body(`,"chat_template_kwargs":{"enable_thinking":false,"a":{"b":1,"c":2}}`), body(`,"chat_template_kwargs":{ "a" : {"c":2,"b":1}, "enable_thinking" : false }`),
			body(`,"chat_template_kwargs":{"x":1},"chat_template_kwargs":{"a":{"b":1,"c":2},"enable_thinking":false}`))
		allOther(t, path, body(``), body(`,"chat_template_kwargs":{"enable_thinking":false}`), body(`,"chat_template_kwargs":{"enable_thinking":true}`))
		want := allSame // which vLLM has in a chat only
		if path == chatPath {
			want = allOther
		}
		want(t, path, body(``), body(`,"chat_template":"x"`), body(`,"documents":[{"text":"x"}]`), body(`,"documents":[{"text":"y"}]`), body(`,"documents":[{"title":"x"}]`),
			body(`,"add_special_tokens":true`))
	}
	effort := map[string][]string{ // none, two efforts, and what is no effort in the API
		chatPath:            {`"a":1`, `"reasoning_effort":"low"`, `"reasoning_effort":"high"`},
		paths[APIResponses]: {`"reasoning_effort":"low"`, `"reasoning":{"effort":"low"}`, `"reasoning":{"effort":"high"}`},
		messagesPath:        {`"reasoning":{"effort":"low"}`, `"output_config":{"effort":"low"}`, `"thinking":{"type":"disabled"}`, `"output_config":{"effort":"high"}`},
	}
	for path, members := range effort {
		var bodies []string
		for _, m := range members {
			bodies = append(bodies, `{"input":"hi","messages":[`+said+`],`+m+`}`)
		}
		allOther(t, path, bodies...)
	}
	allSame(t, messagesPath, `{"messages":[`+said+`],"thinking":{"type":"disabled"}}`, `{"thinking":{"type":"disabled"},"output_config":{"effort":"low"},"messages":[`+said+`]}`)
}

// TestDocumentsAreCounted as the text that they are, and shared as such: RAG's prompts are mostly documents.
func TestDocumentsAreCounted(t *testing.T) {
	document := `{"title":"t","text":"` + strings.Repeat("what it says. ", 400) + `"}`
	body := func(documents string) string {
		return `{"model":"m","messages":[{"role":"user","content":"hi"}],"documents":[` + documents + `]}`
	}
	one, two := parse(chatPath, body(document)), parse(chatPath, body(document+`,`+document))
	if one.Tokens < 1400 || one.Tokens > 1450 || two.Tokens < 2800 || two.Tokens > 2900 {
		t.Errorf("%d and %d tokens", one.Tokens, two.Tokens)
	}
	for i := range 1400 / chain.BlockTokens {
		if one.Chain[i] != two.Chain[i] {
			t.Fatalf("block %d of the first document differs", i)
		}
	}
}

// TestMediaOptionsAreTheMedias: text before a medium is shared whatever is said of media, the medium is not.
func TestMediaOptionsAreTheMedias(t *testing.T) {
	body := func(more string) string {
		return `{"messages":[{"role":"user","content":[{"type":"text","text":"` + strings.Repeat("x", 8*chain.BlockBytes) + `"},{"type":"image_url","image_url":{"url":"u"}}]}]` + more + `}`
	}
	variants := []string{body(``), body(`,"mm_processor_kwargs":{"a":1}`), body(`,"media_io_kwargs":{"a":1}`), body(`,"mm_processor_kwargs":{"a":1},"media_io_kwargs":{"a":1}`)}
	allOther(t, chatPath, variants...)
	first := parse(chatPath, variants[0])
	for _, v := range variants[1:] {
		got := parse(chatPath, v)
		for i := range got.Chain {
			if same := got.Chain[i] == first.Chain[i]; same != (i < 8) {
				t.Errorf("block %d is the same: %v", i, same)
			}
		}
	}
}

// TestToolsAreReadAsTheServerModelsThem: vLLM puts tools in a model of their members, so that the order of those and what
// the model does not have leave no trace; a schema is passed on as it stands. A tool is the same whichever API has it.
func TestToolsAreReadAsTheServerModelsThem(t *testing.T) {
	body := func(tools string) string {
		return `{"model":"m","messages":[{"role":"user","content":"q"}],"input":"q","tools":[` + tools + `]}`
	}
	for _, path := range []string{chatPath, messagesPath, paths[APIResponses]} {
		allSame(t, path,
			body(`{"type":"function","function":{"name":"f","description":"d","parameters":{"a":1,"b":2},"strict":true}}`),
			body(`{"function":{"strict":true,"parameters":{"a":1,"b":2},"name":"f","extra":1,"description":"d","defer_loading":null},"type":"function","extra":2}`),
			body(`{"type":"function","name":"f","parameters":{"a":1,"b":2},"description":"d","strict":true}`),
			body(`{"name":"f","input_schema":{"a":1,"b":2},"strict":true,"description":"d","cache_control":{}}`),
		)
		allOther(t, path, body(``), body(`{"name":"f","input_schema":{"a":1,"b":2}}`), body(`{"name":"f","input_schema":{"b":2,"a":1}}`), body(`{"name":"g","input_schema":{"a":1,"b":2}}`),
			body(`{"function":{"name":"f","parameters":{}},"defer_loading":true}`), body(`{"function":{"name":"f","parameters":{}}}`), body(`{"type":"web_search"}`),
			body(`{"type":"custom","name":"f"}`), body(`{"type":"function","name":"f"}`), body(`1`))
	}
	developer := func(more string) string {
		return chat(`{"role":"developer","content":"a"` + more + `},{"role":"user","content":"b"}`)
	}
	allSame(t, chatPath, developer(``), developer(`,"tools":[]`), developer(`,"tools":null`))
	allOther(t, chatPath, developer(``), developer(`,"tools":[{"name":"f"}]`), developer(`,"tools":[{"name":"g"}]`))
	allSame(t, chatPath, chat(`{"role":"user","content":"a","tools":[1]}`), chat(`{"role":"user","content":"a"}`))
}

// TestReferencesToTools: the tools that an answer or a change names are part of the prompt.
func TestReferencesToTools(t *testing.T) {
	result := func(content string) string {
		return anthropic(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"1"}` + content + `]}]}`)
	}
	allSame(t, messagesPath, result(`,{"type":"tool_reference","tool_name":"f"}`), result(`,{"name":"f","type":"tool_reference","tool_name":""}`), result(`,{"type":"tool_reference","name":"g","tool_name":"f"}`))
	allOther(t, messagesPath, result(``), result(`,{"type":"tool_reference","tool_name":"f"}`), result(`,{"type":"tool_reference","tool_name":"g"}`),
		result(`,{"type":"tool_reference","tool_name":"f"},{"type":"tool_reference","tool_name":"g"}`), result(`,{"type":"text","text":"f"}`))
	change := func(block string) string {
		return anthropic(`{"role":"user","content":"a"},{"role":"system","content":[` + block + `]},{"role":"user","content":"b"}`)
	}
	reference := `,"tool":{"type":"tool_reference","name":"f"}}`
	allOther(t, messagesPath, change(``), change(`{"type":"tool_addition"`+reference), change(`{"type":"tool_removal"`+reference), change(`{"type":"text","text":"f"}`))
	long := func(block string) Prompt {
		return parse(messagesPath, strings.Replace(change(block), `"a"`, `"`+strings.Repeat("x", 8*chain.BlockBytes)+`"`, 1))
	}
	block := `{"type":"tool_addition"` + reference
	allSame(t, messagesPath, `{"system":[`+block+`],"messages":[]}`, `{"messages":[],"system":[`+block+`]}`, `{"messages":[]}`) // where it means nothing
	allSame(t, messagesPath, anthropic(`{"role":"system","content":[`+block+`],"content":"a"}`), anthropic(`{"role":"system","content":"a"}`))
	if long(``).Chain[0] == long(`{"type":"tool_addition"` + reference).Chain[0] {
		t.Error("a change of the tools does not stand with the tools")
	}
}

// TestAttributionsAreDropped: a gateway that translates an Anthropic body to a chat's keeps the client's attribution, which
// differs in every request; vLLM drops its line from the system's texts.
func TestAttributionsAreDropped(t *testing.T) {
	const header = `x-anthropic-billing-header: cch=1f;`
	for path, body := range map[string]func(content string) string{
		chatPath: func(content string) string {
			return chat(`{"content":` + content + `,"role":"system"},{"role":"user","content":"q"}`)
		},
		paths[APIResponses]: func(content string) string { return responses(`"input":[{"role":"system","content":` + content + `}]`) },
	} {
		allSame(t, path, body(`"a\nb"`), body(`"`+header+`\na\nb"`), body(`"x\u002danthropic-billing-header \\\\n\\\u000Aa\nb"`))
		allSame(t, path, body(`""`), body(`"`+header+`"`), body(`"`+header+`\n"`))
		want := allSame // vLLM leaves the parts of a Responses body as they are
		if path == paths[APIResponses] {
			want = allOther
		}
		want(t, path, body(`"a\nb"`), body(`[{"type":"text","text":"`+header+`\na\nb"}]`), body(`[{"type":"text","text":"`+header+`"},{"type":"text","text":"a\nb"}]`), body(`["`+header+`\n","a\nb"]`))
		want(t, path, body(`""`), body(`["`+header+`",""]`))
		allOther(t, path, body(`"a"`), body(`" `+header+`\na"`), body(`"X`+header+`\na"`))
	}
	allSame(t, paths[APIResponses], responses(`"instructions":"a","input":"q"`), responses(`"instructions":"`+header+`\na","input":"q"`))
	allSame(t, messagesPath, `{"system":"a","messages":[]}`, `{"messages":[],"system":"`+header+`\na"}`)
	allOther(t, chatPath, chat(`{"role":"user","content":"`+header+`\na"}`), chat(`{"role":"user","content":"a"}`))
	allOther(t, chatPath, chat(`{"role":"developer","content":"`+header+`\na"}`), chat(`{"role":"developer","content":"a"}`))
}

// TestMaxTokens: each API has its own name for it. An echo asks for none, and vLLM decodes one.
func TestMaxTokens(t *testing.T) {
	for _, c := range []struct {
		api     API
		members string
		want    int
	}{
		{APICompletions, `"echo":true,"max_tokens":0`, 1},
		{APICompletions, `"max_tokens":5,"max_completion_tokens":7,"max_output_tokens":8`, 5},
		{APIChat, `"max_tokens":5,"max_completion_tokens":7,"max_output_tokens":8`, 7},
		{APIChat, `"max_tokens":5,"max_completion_tokens":null`, 5},
		{APIChat, `"max_tokens":5,"max_completion_tokens":0`, 1},
		{APIMessages, `"max_tokens":5,"max_completion_tokens":7`, 5},
		{APIResponses, `"max_tokens":5,"max_completion_tokens":7,"max_output_tokens":8`, 8},
		{APIResponses, `"max_tokens":5`, 0},
		{APIChat, `"max_tokens":null`, 0},
		{APIChat, `"max_tokens":-1`, 0},
	} {
		if got := parse(paths[c.api], `{"prompt":"x","input":"x","messages":[],`+c.members+`}`); got.MaxTokens != c.want {
			t.Errorf("%v, %s: %d, want %d", c.api, c.members, got.MaxTokens, c.want)
		}
	}
}

// TestTruncatedPrompts count what is kept of them, and have no chain, as it is their beginning that goes.
func TestTruncatedPrompts(t *testing.T) {
	for path, body := range map[string]string{
		completionsPath:      `{"prompt":["` + strings.Repeat("x", 4096) + `","short"],"truncate_prompt_tokens":`,
		paths[APIEmbeddings]: `{"input":["` + strings.Repeat("x", 4096) + `","short"],"truncate_prompt_tokens":`,
		chatPath:             `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 4096-8) + `"}],"truncate_prompt_tokens":`,
	} {
		whole, kept, more := parse(path, body+`null}`), parse(path, body+`100}`), parse(path, body+`-1}`)
		if short := whole.Tokens - 1024; kept.Tokens != 100+short || len(kept.Chain) != 0 || kept.Reason != ReasonNone {
			t.Errorf("%s: %d tokens in %d blocks (%v), where all are %d", path, kept.Tokens, len(kept.Chain), kept.Reason, whole.Tokens)
		}
		if more.Tokens != whole.Tokens || len(more.Chain) != len(whole.Chain) || len(whole.Chain) < 16 {
			t.Errorf("%s: %d tokens in %d blocks, want %d in %d", path, more.Tokens, len(more.Chain), whole.Tokens, len(whole.Chain))
		}
	}
}
