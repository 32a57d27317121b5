package prompt

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
)

// TestPathNamesAPI: llm-d/llm-d-router#1516.
func TestPathNamesAPI(t *testing.T) {
	for path, want := range map[string]API{
		"/v1/chat/completions":                       APIChat,
		"/v1/chat/completions?api-version=1":         APIChat,
		"/v1/chat/completions#x":                     APIChat,
		"/v1/chat/completions/":                      APIChat,
		"/v1/chat/completions//?x=/v1/other":         APIChat,
		"//v1/chat/completions":                      APIChat,
		"/v1//chat///completions":                    APIChat,
		"/prefix/v1/chat/completions":                APIChat,
		"/v1/chat/%63ompletions":                     APIChat,
		"/v1/chat%2Fcompletions":                     APIChat,
		"http://host/v1/chat/completions":            APIChat,
		"/v1/completions":                            APICompletions,
		"/a/b/v1/completions/?stream":                APICompletions,
		"/v1/chat/completions/render":                APIOther,
		"/v1/chat/completions%3Fx":                   APIOther,
		"/v1/chat/completions%2":                     APIOther,
		"/v1/chat/%zzcompletions":                    APIOther,
		"/V1/Chat/Completions":                       APIOther,
		"/xv1/completions":                           APIOther,
		"/completions":                               APIOther,
		"/inference/v1/generate":                     APIOther,
		"/v1/responses?x":                            APIResponses,
		"/openai/v1/%72esponses/":                    APIResponses,
		"/v1/responses/resp_1":                       APIOther,
		"/v1/responses/resp_1/cancel":                APIOther,
		"//v1//messages":                             APIMessages,
		"/v1%2Fmessages":                             APIMessages,
		"/v1/%6dessages?beta=true":                   APIMessages,
		"/v1/messages/batches":                       APIOther,
		"/v1/messages/count_tokens":                  APICount,
		"/anthropic/v1/messages/count%5Ftokens/?b":   APICount,
		"/v1/count_tokens":                           APIOther,
		"/v1/embeddings/":                            APIEmbeddings,
		"/V1/embeddings":                             APIOther,
		"/v1/rerank?next=/v1/completions":            APIOther,
		"/":                                          APIOther,
		"":                                           APIOther,
		"/v1/models":                                 APIOther,
		"/v1/completions" + strings.Repeat("/", 100): APICompletions,
	} {
		if got, _ := apiOf(path, nil); got != want {
			t.Errorf("%q names %v, want %v", path, got, want)
		}
	}
}

// TestReadByWhatTheBodyHas: kubernetes-sigs/gateway-api-inference-extension#790, path by body shape.
func TestReadByWhatTheBodyHas(t *testing.T) {
	const messages, text = `{"model":"m","temperature":0,"messages":[{"role":"user","content":"hi"}]}`, `{"model":"m","prompt":"hello"}`
	const both = `{"model":"m","prompt":"hello","messages":[{"role":"user","content":"hi"}]}`
	chat, completion := parse(chatPath, messages), parse(completionsPath, text)
	for _, c := range []struct {
		path, body string
		api        API
		want       Prompt
	}{
		{chatPath, messages, APIChat, chat},
		{completionsPath, messages, APICompletions, chat},
		{chatPath, text, APIChat, completion},
		{completionsPath, text, APICompletions, completion},
		{chatPath, both, APIChat, chat},
		{completionsPath, both, APICompletions, completion},
	} {
		got := parse(c.path, c.body)
		if got.API != c.api || got.Reason != ReasonNone || got.Model != "m" || got.Tokens != c.want.Tokens || !slices.Equal(got.Chain, c.want.Chain) {
			t.Errorf("%s %s: %+v, want the chain of %+v", c.path, c.body, got, c.want)
		}
	}
	if chat.Tokens != 3 || completion.Tokens != 2 { // "FF M user FF X hi" is 10 bytes, "hello" is 5
		t.Errorf("tokens %d and %d, want 3 and 2", chat.Tokens, completion.Tokens)
	}
}

// TestReasons: why a body is read by its size only, and what it then counts.
func TestReasons(t *testing.T) {
	nested := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	binary := strings.Repeat("\x00\xff", 100_000)
	for _, c := range []struct {
		name, path string
		unread     Reason
		body       string
		reason     Reason
		tokens     int
	}{
		{"other path", "/v1/models", ReasonNone, `{"prompt":"x"}`, ReasonPath, 4},
		{"other path, no body", "/v1/models", ReasonNone, "", ReasonPath, 0},
		{"no body", chatPath, ReasonNone, "", ReasonEmpty, 0},
		{"encoded", chatPath, ReasonEncoding, `12345678`, ReasonEncoding, 2},
		{"not seen", chatPath, ReasonMode, "", ReasonMode, 0},
		{"no JSON", chatPath, ReasonNone, "a=b&c=d", ReasonNotJSON, 2},
		{"only space", chatPath, ReasonNone, "  \n", ReasonNotJSON, 1},
		{"an array", chatPath, ReasonNone, "[1]", ReasonNotJSON, 1},
		{"cut short", chatPath, ReasonNone, `{"messages":[{"role":"user"`, ReasonNotJSON, 7},
		{"two values", chatPath, ReasonNone, chat("") + "{}", ReasonNotJSON, 8},
		{"a NUL behind", chatPath, ReasonNone, chat("") + "\x00", ReasonNotJSON, 7},
		{"wrong bracket", chatPath, ReasonNone, `{"messages":[},"a":1}`, ReasonNotJSON, 6},
		{"wrong bracket in an unknown key", chatPath, ReasonNone, `{"x":[1},"prompt":"x"}`, ReasonNotJSON, 6},
		{"wrong brace in an unknown key", chatPath, ReasonNone, `{"x":{"y":1],"prompt":"x"}`, ReasonNotJSON, 7},
		{"no comma", chatPath, ReasonNone, `{"a":1 "b":2}`, ReasonNotJSON, 4},
		{"no value", chatPath, ReasonNone, `{"a":,"b":2}`, ReasonNotJSON, 3},
		{"deep in an unknown key", chatPath, ReasonNone, `{"x":` + nested + `,"prompt":"x"}`, ReasonDepth, 50_005},
		{"no prompt", chatPath, ReasonNone, `{"model":"m"}`, ReasonShape, 4},
		{"null prompts", completionsPath, ReasonNone, `{"prompt":null,"messages":null}`, ReasonShape, 8},
		{"a message that is no object", chatPath, ReasonNone, chat(`"hi"`), ReasonShape, 8},
		{"ids and strings in one prompt", completionsPath, ReasonNone, `{"prompt":[1,"a"]}`, ReasonShape, 5},
		{"an id that is no integer", completionsPath, ReasonNone, `{"prompt":[1.5]}`, ReasonShape, 4},
		{"ids without a comma", completionsPath, ReasonNone, `{"prompt":[1 2]}`, ReasonShape, 4},
		{"a batch without a comma", completionsPath, ReasonNone, `{"prompt":["a" "b"]}`, ReasonShape, 5},
		{"ids and an array in one prompt", completionsPath, ReasonNone, `{"prompt":[1,[2]]}`, ReasonShape, 5},
		{"an id below zero", completionsPath, ReasonNone, `{"prompt":[-1]}`, ReasonShape, 4},
		{"an id beyond 32 bits", completionsPath, ReasonNone, `{"prompt":[4294967296]}`, ReasonShape, 6},
		{"a null in a batch", completionsPath, ReasonNone, `{"prompt":["a",null]}`, ReasonShape, 6},
		{"a long model", chatPath, ReasonNone, `{"model":"` + strings.Repeat("m", MaxNameBytes+1) + `","prompt":"x"}`, ReasonShape, 263},
		{"multipart", "/v1/audio/transcriptions", ReasonNone, "--XyZ\r\n" + binary, ReasonPath, MediaTokens},
		{"binary on a known path", chatPath, ReasonNone, binary, ReasonNotJSON, MediaTokens},
		{"32 MiB of unknown JSON", "/v1/rerank", ReasonNone, `{"x":"` + strings.Repeat("x", 32<<20) + `"}`, ReasonPath, MaxSizeTokens},
	} {
		var p Parser
		got := Prompt{Chain: chain.Chain{1, 2, 3}}
		p.Parse(&got, Input{Path: c.path, Body: []byte(c.body), Unread: c.unread})
		if got.Reason != c.reason || got.Tokens != c.tokens || len(got.Chain) != 0 {
			t.Errorf("%s: %v, %d tokens, %d blocks; want %v, %d, 0", c.name, got.Reason, got.Tokens, len(got.Chain), c.reason, c.tokens)
		}
	}
}

// TestNumbersStayAsSpelled: llm-d/llm-d-router#2518. Nothing is decoded into a float, so what a
// number in tools says is told apart, and odd numbers elsewhere do no harm.
func TestNumbersStayAsSpelled(t *testing.T) {
	got := parse(completionsPath, `{"model":"m","prompt":"x","seed":9007199254740993,"z":1.0,"a":1e400,"u":"\u2028","dup":1,"dup":2}`)
	if got.Reason != ReasonNone || got.Tokens != 1 || got.Model != "m" {
		t.Errorf("read as %+v", got)
	}
	tools := func(n string) string { return `{"tools":[{"maximum":` + n + `}],"messages":[]}` }
	otherChain(t, chatPath, tools("9007199254740993"), tools("9007199254740992"))
	otherChain(t, chatPath, tools("1.0"), tools("1"))
	sameChain(t, chatPath, tools("1e400"), tools(" 1e400 "))
}

// TestContentMayBeAnything: lmstudio-ai/lmstudio-bug-tracker#261.
func TestContentMayBeAnything(t *testing.T) {
	turn := func(content, arguments string) string {
		return chat(`{"role":"user","content":"q"},{"role":"assistant",` + content + `"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"` +
			arguments + `"}}]},{"role":"tool","tool_call_id":"c1","content":"42"}`)
	}
	const args = `{\"q\":1}`
	for _, content := range []string{`"content":[],`, ``, `"content":[{"type":"text","text":null}],`, `"content":[null],`} {
		sameChain(t, chatPath, turn(`"content":null,`, args), turn(content, args))
	}
	sameChain(t, chatPath, turn(`"content":"a",`, args), turn(`"content":[{"type":"text","text":"a"}],`, args))
	otherChain(t, chatPath, turn(`"content":5,`, args), turn(`"content":"5",`, args))
	if empty := parse(chatPath, turn(`"content":"",`, args)); empty.Reason != ReasonNone || empty.Tokens == 0 {
		t.Errorf("an empty content: %+v", empty)
	}
	otherChain(t, chatPath, turn(`"content":null,`, args), turn(`"content":null,`, `{\"q\":2}`))
	with, without := parse(chatPath, turn(`"content":null,`, args)), parse(chatPath, turn(`"content":null,`, ``))
	if with.Tokens <= without.Tokens {
		t.Errorf("%d tokens with arguments, %d without", with.Tokens, without.Tokens)
	}
}

// TestKeysAreExact: modelcontextprotocol/go-sdk#805, golang/go#14750. A key in another case, or one
// that only folds to a known key, is another key; of equal keys the last counts.
func TestKeysAreExact(t *testing.T) {
	want := parse(chatPath, chat(`{"role":"user","content":"real"}`))
	for _, body := range []string{
		`{"model":"m","MODEL":"other","priority":9,"messages":[{"role":"user","content":"real"}],"meſſages":[{"role":"user","content":"fake"}]}`,
		`{"model":"n","messages":[{"role":"user","content":"fake"}],"messages":[{"role":"user","content":"real"}],"model":"m"}`,
		`{"messages":[5],"messages":[{"content":"fake","Content":"x","role":"x","content":["y"],"role":"user","content":"real"}],"\u006dodel":"m"}`,
		`{"messages":[{"content":"y","role":"user","content":["real"]}],"model":"m","modelmodelmodelmodelmodelmodelmodel\u0020":"x"}`,
	} {
		if got := parse(chatPath, body); got.Model != "m" || !slices.Equal(got.Chain, want.Chain) {
			t.Errorf("model %q or chain not that of the last exact keys: %s", got.Model, body)
		}
	}
	sameChain(t, chatPath, chat(`{"tool_calls":[{"id":"b"}],"tool_calls":[{"id":"a"}]}`), chat(`{"tool_calls":[{"id":"a"}]}`))
	if got := parse(chatPath, `{"messages":[{}],"messages":null}`); got.Reason != ReasonShape {
		t.Errorf("a last messages of null: %v", got.Reason)
	}
}

// TestMalformedTextIsToldApart: Mnexa-AI/e2a PR#804.
func TestMalformedTextIsToldApart(t *testing.T) {
	texts := []string{
		"a\xffb", "a\xfeb", "a\xff\x00b", `a\u00ffb`, `a\ufffdb`, `a\ud83db`, `a\ude00b`, "a\xed\xa0\xbdb", `a\\ud83db`,
		"a\xff\x01\xd8\x3db", `a\ud83d\ud83d\ude00b`, `a\ud83d\ude00b`, `a\ude00\ud83db`, `a\ude00\ude00b`, `a\u0000b`, `ab`,
	}
	for i, a := range texts {
		if body := []byte(`{"prompt":"` + a + `"}`); json.Valid(body) { // the rest holds raw control bytes
			compare(t, APICompletions, "", body)
		}
		for _, b := range texts[i+1:] {
			otherChain(t, completionsPath, `{"prompt":"`+a+`"}`, `{"prompt":"`+b+`"}`)
			otherChain(t, chatPath, chat(`{"content":"`+a+`"}`), chat(`{"content":"`+b+`"}`))
		}
	}
	sameChain(t, completionsPath, `{"prompt":"a\ud83d\uDE00b\u00E9\/\u0041"}`, `{"prompt":"a😀bé/A"}`)
}

// TestFramingIsUnambiguous: neighbours do not run into one another, and no text imitates a tag.
func TestFramingIsUnambiguous(t *testing.T) {
	bodies := []string{
		chat(`{"role":"ab","content":"c"}`), chat(`{"role":"a","content":"bc"}`), chat(`{"role":"abc"}`),
		chat(`{"role":"a","content":["b","c"]}`), chat(`{"role":"a","content":"b"},{"content":"c"}`),
		chat("{\"role\":\"a\xffXbc\"}"), chat(`{"role":"a","name":"bc"}`), chat(`{"role":"a","tool_call_id":"bc"}`),
		chat(`{"role":"a","reasoning":"bc"}`), chat(`{"role":"a","tool_calls":"bc"}`), chat(`{"role":"a","content":{"b":"c"}}`),
		chat(`{"role":"a","content":{"b":{"c":[]}}}`), chat(`{"role":"a","content":[{"image_url":"bc"}]}`),
		`{"model":"m","tools":["a"],"messages":[{"role":"b"}]}`, `{"model":"m","tools":["a","b"],"messages":[{}]}`,
		`{"model":"m","prompt":"abc"}`, `{"model":"m","prompt":[6513249]}`,
		`{"model":"m","prompt":"abc","cache_salt":"s"}`, `{"model":"ms","prompt":"abc"}`, `{"prompt":"abc"}`,
	}
	for i, a := range bodies {
		for _, b := range bodies[i+1:] {
			otherChain(t, completionsPath, a, b)
		}
	}
}

// TestContentTypeAndMarkAreNoMatter: vllm-project/vllm#11171. Whether a body is JSON is seen from the
// body; a byte order mark and whitespace around it are no part of it.
func TestContentTypeAndMarkAreNoMatter(t *testing.T) {
	body := chat(`{"role":"user","content":"hi"}`)
	sameChain(t, chatPath, body, "\xEF\xBB\xBF"+body)
	sameChain(t, chatPath, body, " \r\n\t"+strings.ReplaceAll(body, ":", " :\t")+"\n")
}

func TestAnswerLimits(t *testing.T) {
	for member, want := range map[string]int{
		`"max_tokens":16`: 16, `"max_completion_tokens":7`: 7, `"max_tokens":16,"max_completion_tokens":7`: 7,
		`"max_completion_tokens":7,"max_tokens":16`: 7, `"max_tokens":16,"max_completion_tokens":null`: 16,
		`"max_tokens":1.0`: 0, `"max_tokens":-1`: 0, `"max_tokens":"16"`: 0, `"max_tokens":1e3`: 0, `"max_tokens":[16]`: 0,
		`"max_tokens":99999999999999999999999`: math.MaxInt32, `"max_tokens":1,"max_tokens":2`: 2,
	} {
		if got := parse(chatPath, `{"messages":[],`+member+`}`); got.MaxTokens != want || got.Reason != ReasonNone {
			t.Errorf("%s: %d (%v), want %d", member, got.MaxTokens, got.Reason, want)
		}
	}
	for member, want := range map[string]bool{`true`: true, `false`: false, `null`: false, `"true"`: false, `1`: false, ` true `: true} {
		if got := parse(chatPath, `{"messages":[],"stream":`+member+`}`); got.Stream != want {
			t.Errorf("stream %s: %v", member, got.Stream)
		}
	}
}

// TestPromptUnion: the completions half of llm-d/llm-d-router#1062.
func TestPromptUnion(t *testing.T) {
	for prompt, tokens := range map[string]int{
		`"alpha beta"`: 3, `["alpha beta"]`: 3, `["alpha beta","gamma"]`: 5, `[101,102,103]`: 3, `[[101,102],[103]]`: 3,
		`[[101],"gamma"]`: 3, `[]`: 1, `""`: 1, `[[]]`: 1, `["",""]`: 1, `"\u00e9\u00e9\u00e9"`: 2, `[ 1 , 2 ]`: 2,
	} {
		if got := parse(completionsPath, `{"prompt":`+prompt+`}`); got.Tokens != tokens || got.Reason != ReasonNone {
			t.Errorf("prompt %s: %d tokens (%v), want %d", prompt, got.Tokens, got.Reason, tokens)
		}
	}
	ids := `[` + strings.Repeat(`7,`, 2*chain.BlockTokens) + `9]`
	if got := parse(completionsPath, `{"prompt":`+ids+`}`); got.Tokens != 2*chain.BlockTokens+1 || len(got.Chain) != 3 {
		t.Errorf("%d tokens in %d blocks, the padding's included", got.Tokens, len(got.Chain))
	}
	var p Parser
	var one, batch Prompt
	text := strings.Repeat("x", 1000)
	p.Parse(&one, Input{Path: completionsPath, Body: []byte(`{"prompt":"` + text + `"}`)})
	p.Parse(&batch, Input{Path: completionsPath, Body: []byte(`{"prompt":["` + text + `","` + text + `",` + ids + `]}`)})
	if len(one.Chain) != 3 || !slices.Equal(one.Chain, batch.Chain) || batch.Tokens != 2*one.Tokens+2*chain.BlockTokens+1 {
		t.Errorf("a batch has %d tokens and chain %x, its first item %d and %x", batch.Tokens, batch.Chain, one.Tokens, one.Chain)
	}
}

func TestLabelsAreClosed(t *testing.T) {
	seen := map[string]bool{}
	for i := range 256 {
		a, r := API(i).String(), Reason(i).String()
		if a == "" || r == "" {
			t.Errorf("%d has no label", i)
		}
		seen["api "+a], seen["reason "+r] = true, true
	}
	if len(seen) != len(apiNames)+len(reasonNames) || APIChat.String() != "chat" || ReasonShape.String() != "shape" {
		t.Errorf("labels: %v", seen)
	}
}
