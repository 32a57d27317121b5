package prompt

import (
	"strings"
	"testing"
)

// allSame and allOther hold every pair of bodies at path against each other.
func allSame(t *testing.T, path string, bodies ...string) {
	t.Helper()
	for _, b := range bodies[1:] {
		sameChain(t, path, bodies[0], b)
	}
}

func allOther(t *testing.T, path string, bodies ...string) {
	t.Helper()
	for i, a := range bodies {
		for _, b := range bodies[i+1:] {
			otherChain(t, path, a, b)
		}
	}
}

// part is a chat of one message with these parts.
func part(parts string) string {
	return chat(`{"role":"user","content":[` + parts + `]}`)
}

// TestPartsAreWhatTheirTypeSays: vLLM reads of a part the member that its type names, and infers a type that is
// not there.
func TestPartsAreWhatTheirTypeSays(t *testing.T) {
	allSame(t, chatPath,
		part(`{"type":"text","text":"a"}`), part(`"a"`), part(`{"text":"a"}`), part(`{"type":"input_text","text":"a"}`), part(`{"type":"refusal","refusal":"a"}`),
		part(`{"type":"thinking","thinking":"a","text":"b"}`), part(`{"image_url":{"url":"u"},"text":"a","type":"text"}`), part(`{"type":null,"text":"a"}`),
		chat(`{"role":"user","content":{"type":"text","text":"a"}}`), chat(`{"role":"user","content":"a"}`),
	)
	allSame(t, chatPath,
		part(`{"type":"image_url","image_url":{"url":"u"}}`), part(`{"type":"image_url","image_url":{"detail":"low","url":"u"}}`),
		part(`{"image_url":"u"}`), part(`{"type":"input_image","image_url":"u","detail":"auto"}`), part(`{"type":"image_url","image_url":{"url":"u"},"text":"a"}`),
		part(`{"type":"image_url","image_url":{"url":"v","url":"\u0075"}}`),
	)
	allSame(t, chatPath,
		part(`{"type":"input_audio","input_audio":{"data":"d","format":"wav"}}`), part(`{"input_audio":{"format":"mp3","data":"d"},"type":"input_audio"}`))
	allSame(t, chatPath, chat(`{"role":"user","content":""}`), chat(`{"role":"user","content":null}`), chat(`{"role":"user","content":[]}`), chat(`{"role":"user"}`),
		part(`{"type":"text","text":""}`), part(`{"type":"text","text":null}`), part(`{"type":"text"}`), part(`{"type":"image_url","image_url":null}`))
	allOther(t, chatPath,
		part(`{"type":"text","text":"a"}`), part(`"",{"type":"text","text":"a"}`), part(`{"type":"tool_reference","name":"a"}`), part(`{"type":"prompt_embeds","data":"a"}`),
		part(`{"type":"image_url","image_url":{"url":"a"}}`), part(`{"type":"video_url","video_url":{"url":"a"}}`), part(`{"type":"audio_url","audio_url":{"url":"a"}}`),
		part(`{"type":"file","file":{"file_id":"a"}}`), part(`{"type":"file","file":{"file_data":"a"}}`), part(`{"type":"file","file":{"url":"a"}}`),
		part(`{"type":"image_url","image_url":{"url":"b"},"uuid":"a"}`), part(`{"type":"a"}`), part(``),
	)
}

// TestUUIDsNameMedia: vLLM keys its caches by a medium's uuid, whatever is sent of the medium, and takes null for what
// it holds already. It counts as the medium does.
func TestUUIDsNameMedia(t *testing.T) {
	allSame(t, chatPath, part(`{"type":"image_url","image_url":{"url":"a"},"uuid":"u"}`), part(`{"type":"image_url","image_url":null,"uuid":"u"}`),
		part(`{"uuid":"u","type":"image_url","image_url":{"url":"b"}}`))
	allSame(t, chatPath, part(`{"type":"image_url","image_url":{"url":"a"},"uuid":null}`), part(`{"type":"image_url","image_url":{"url":"a"}}`))
	allOther(t, chatPath, part(`{"type":"prompt_embeds","data":"a","prompt_embeds":"x","uuid":"u"}`), part(`{"type":"prompt_embeds","data":"b","prompt_embeds":"x","uuid":"u"}`))
	allOther(t, chatPath, part(`{"type":"image_url","image_url":"a","uuid":"u"}`), part(`{"type":"video_url","video_url":"a","uuid":"u"}`), part(`{"type":"audio_url","audio_url":"a","uuid":"u"}`),
		part(`{"type":"image_url","image_url":"u"}`), part(`{"type":"image_url","image_url":"a","uuid":"v"}`))
	if got := parse(chatPath, part(`{"type":"image_url","image_url":null,"uuid":"u"}`)); got.Tokens < MediaTokens || got.Tokens > MediaTokens+16 {
		t.Errorf("%d tokens", got.Tokens)
	}
}

// TestUnknownMediaAreReadInAnyOrder: of an object whose content has no name that is known, all counts.
func TestUnknownMediaAreReadInAnyOrder(t *testing.T) {
	embeds := func(members string) string { return part(`{"type":"image_embeds","image_embeds":{` + members + `}}`) }
	allSame(t, chatPath, embeds(`"a":"x","grid":[1,{"b":2,"c":null}]`), embeds(` "grid" : [1, {"c":null,"b":2}] , "\u0061":"\u0078"`))
	allOther(t, chatPath, embeds(`"a":"x","b":"y"`), embeds(`"a":"y","b":"x"`), embeds(`"a":"x"`), embeds(`"a":["x"]`), embeds(`"a":["x","y"]`), embeds(`"a":["y","x"]`),
		embeds(`"a":{"x":"y"}`), embeds(`"a":[]`), embeds(`"a":{}`), embeds(``), embeds(`"a":1`), embeds(`"a":"1"`))
	for _, broken := range []string{`"a" "b"`, `1`, `"a":,`, `,`, `"a":1 2`, `"a"`, `"a":[1 2,"b":3]`, `[`} { // only brackets are checked
		body := embeds(broken)
		if got := parse(chatPath, body); got.Reason != ReasonNone && got.Reason != ReasonNotJSON {
			t.Errorf("%s: %v", body, got.Reason)
		}
	}
}

// TestContentOfTheWrongKindIsBounded: an object where texts are due is a part, and not a text as long as its base64.
func TestContentOfTheWrongKindIsBounded(t *testing.T) {
	data := strings.Repeat("iVBORw0K", 64<<10)
	for path, bodies := range map[string][]string{
		chatPath: {chat(`{"role":"user","content":{"type":"image_url","image_url":{"url":"` + data + `"}}}`)},
		messagesPath: {
			anthropic(`{"role":"user","content":{"type":"image","source":{"data":"` + data + `"}}}`),
			`{"model":"m","messages":[],"system":{"type":"image","source":{"data":"` + data + `"}}}`,
		},
		paths[APIResponses]: {
			responses(`"input":[{"type":"function_call_output","output":{"type":"input_image","image_url":"` + data + `"}}]`),
			responses(`"input":[{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"` + data + `"}}]`),
			responses(`"previous_response_id":"r","input":[{"role":"user","content":[{"type":"input_image","image_url":"` + data + `"}]}]`),
			responses(`"input":[{"role":"user","content":[{"type":"input_image","image_url":"` + data + `"}]},{"type":"item_reference","id":"i"}]`),
		},
	} {
		for _, body := range bodies {
			if got := parse(path, body); got.Tokens > MediaTokens+16 {
				t.Errorf("%.120s: %d tokens", body, got.Tokens)
			}
		}
	}
}

// TestMessagesHaveOneReasoning: a client that echoes both names of it says it once. A task is DeepSeek's.
func TestMessagesHaveOneReasoning(t *testing.T) {
	body := func(more string) string { return chat(`{"role":"assistant","content":"a"` + more + `}`) }
	allSame(t, chatPath, body(`,"reasoning":"r"`), body(`,"reasoning_content":"s","reasoning":"r"`), body(`,"reasoning":null,"reasoning_content":"r"`))
	allOther(t, chatPath, body(``), body(`,"reasoning":"r"`), body(`,"reasoning":"s"`), body(`,"task":"r"`), body(`,"task":"s"`), body(`,"name":"r"`))
}
