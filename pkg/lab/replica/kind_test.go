package replica

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// The same conversation in three APIs, with tools, a call, its result and an image, for the model and at most so many
// tokens of answer. The Anthropic one has the block that changes from request to request in front.
const (
	asChat = `{"model":"tiny","max_tokens":%d,"tools":[{"type":"function"}],"messages":[{"role":"system","content":"Be brief."},
		{"role":"user","content":[{"type":"text","text":"Rain?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},
		{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"yes"},
		{"role":"user","content":"And tomorrow?"}]%s}`
	asMessages = `{"model":"tiny","max_tokens":%d,"tools":[{"name":"function"}],"system":[{"type":"text","text":"x-anthropic-billing-header: %[2]d"},{"type":"text","text":"Be brief."}],
		"messages":[{"role":"user","content":[{"type":"text","text":"Rain?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]},
		{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]},
		{"role":"user","content":[{"type":"text","text":"And tomorrow?"},{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"yes"}]}]}]%[3]s}`
	asResponses = `{"model":"tiny","max_output_tokens":%d,"tools":[{"type":"function"}],"instructions":"Be brief.","input":[
		{"role":"user","content":[{"type":"input_text","text":"Rain?"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]},
		{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"yes"},
		{"role":"user","content":"And tomorrow?"}]%s}`
)

// chatPrompt is the prompt tokens of asChat, which those of the others are within the spelling of tools and calls.
func chatPrompt(t *testing.T, url string) int {
	t.Helper()
	code, text := ask(t, url+"/v1/chat/completions", fmt.Sprintf(asChat, 1, ""))
	if code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	return decode[struct{ Usage usage }](t, text).Usage.Prompt
}

func near(a, b int) bool { return max(a-b, b-a) < 20 }

// TestMessages: a message is what the chat is that it becomes, its second time comes from the cache, and its count is
// the tokens of its prompt.
func TestMessages(t *testing.T) {
	url, _ := start(t, nil)
	want := chatPrompt(t, url)
	for turn := range 2 {
		code, text := ask(t, url+"/v1/messages", fmt.Sprintf(asMessages, 5, turn, ""))
		got := decode[struct {
			Type, Role, Model string
			Content           []struct{ Type, Text string }
			Reason            string `json:"stop_reason"`
			Usage             anthropicUsage
		}](t, text)
		u := got.Usage
		if code != 200 || got.Type != "message" || got.Role != "assistant" || got.Model != "tiny" || got.Reason != "max_tokens" ||
			len(got.Content) != 1 || got.Content[0].Type != "text" || len(got.Content[0].Text) != 5*tokenBytes || u.Output != 5 || !near(u.Input+u.Cached, want) {
			t.Fatalf("%d %s, want about %d tokens", code, text, want)
		}
		if turn == 1 && u.Input > 16 || turn == 0 && u.Cached != 0 {
			t.Errorf("turn %d: %+v", turn, u)
		}
		_, text = ask(t, url+"/v1/messages/count_tokens", fmt.Sprintf(asMessages, 5, turn, ""))
		if n := decode[map[string]any](t, text)["input_tokens"]; n != float64(u.Input+u.Cached) {
			t.Errorf("counted: %s, want %d", text, u.Input+u.Cached)
		}
	}
}

// TestResponses is TestMessages for OpenAI's responses.
func TestResponses(t *testing.T) {
	url, _ := start(t, nil)
	want := chatPrompt(t, url)
	for turn := range 2 {
		code, text := ask(t, url+"/v1/responses", fmt.Sprintf(asResponses, 5, ""))
		got := decode[struct {
			Object, Status string
			Details        struct{ Reason string } `json:"incomplete_details"`
			Output         []struct {
				Type    string
				Content []struct{ Type, Text string }
			}
			Usage struct {
				Input   int `json:"input_tokens"`
				Output  int `json:"output_tokens"`
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"input_tokens_details"`
			}
		}](t, text)
		u := got.Usage
		if code != 200 || got.Object != "response" || got.Status != "incomplete" || got.Details.Reason != "max_output_tokens" || len(got.Output) != 1 ||
			got.Output[0].Type != "message" || len(got.Output[0].Content) != 1 || len(got.Output[0].Content[0].Text) != 5*tokenBytes || u.Output != 5 || !near(u.Input, want) {
			t.Fatalf("%d %s, want about %d tokens", code, text, want)
		}
		if turn == 1 && u.Details.Cached < u.Input-16 || turn == 0 && u.Details.Cached > u.Input/2 {
			t.Errorf("turn %d: %+v", turn, u)
		}
	}
	one := decode[struct{ Status string }](t, second(ask(t, url+"/v1/responses", `{"model":"tiny","input":"hi"}`)))
	if one.Status != "completed" {
		t.Errorf("without a limit: %s", one.Status)
	}
}

func second(_ int, text string) string { return text }

// named splits a stream of named events, each of whose data repeats its name.
func named(t *testing.T, stream string) (names []string, data []map[string]any) {
	t.Helper()
	for event := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		name, text, ok := strings.Cut(event, "\n")
		name, isName := strings.CutPrefix(name, "event: ")
		text, isData := strings.CutPrefix(text, "data: ")
		d := decode[map[string]any](t, text)
		if !ok || !isName || !isData || d["type"] != name {
			t.Fatalf("event %q", event)
		}
		names, data = append(names, name), append(data, d)
	}
	return names, data
}

// TestNamedEvents holds the order of the events of messages and responses to vLLM's, and their text to what was asked.
func TestNamedEvents(t *testing.T) {
	url, _ := start(t, nil)
	for _, c := range []struct {
		path, body, delta, want string
		text                    func(map[string]any) any
	}{
		{"/v1/messages", fmt.Sprintf(asMessages, 4, 0, `,"stream":true`), "content_block_delta",
			"message_start content_block_start content_block_delta content_block_stop message_delta message_stop",
			func(d map[string]any) any { return d["delta"].(map[string]any)["text"] }},
		{"/v1/responses", fmt.Sprintf(asResponses, 4, `,"stream":true`), "response.output_text.delta",
			"response.created response.in_progress response.output_item.added response.content_part.added response.output_text.delta " +
				"response.output_text.done response.content_part.done response.output_item.done response.completed",
			func(d map[string]any) any { return d["delta"] }},
	} {
		resp := post(t, url+c.path, c.body)
		if ct := resp.Header.Get("content-type"); resp.StatusCode != 200 || ct != "text/event-stream; charset=utf-8" {
			t.Errorf("%s: status %d, content-type %q", c.path, resp.StatusCode, ct)
		}
		names, data := named(t, read(t, resp.Body))
		var text string
		for i, n := range names {
			if n == c.delta {
				text += c.text(data[i]).(string)
			}
			if seq, ok := data[i]["sequence_number"]; ok && seq != float64(i) {
				t.Errorf("%s: event %d has number %v", c.path, i, seq)
			}
		}
		if got := strings.Join(slices.Compact(names), " "); got != c.want || text != string(answer(nil, 0, 4)) {
			t.Errorf("%s: events %s, text %q", c.path, got, text)
		}
	}
}

// TestEmbeddings in the four forms of input: the tokens of each, and one vector of length 1 for each item, alike in both
// encodings.
func TestEmbeddings(t *testing.T) {
	url, _ := start(t, nil)
	for input, want := range map[string]struct{ items, tokens int }{
		`"eight by"`: {1, 2}, `["four","eight by"]`: {2, 3}, `[1,2,3,4]`: {1, 4}, `[[1,2,3],[4]]`: {2, 4},
	} {
		code, text := ask(t, url+"/v1/embeddings", fmt.Sprintf(`{"model":"tiny","input":%s}`, input))
		got := decode[struct {
			Data  []struct{ Embedding []float32 }
			Usage usage
		}](t, text)
		if code != 200 || len(got.Data) != want.items || got.Usage.Prompt != want.tokens || got.Usage.Completion != 0 {
			t.Fatalf("%s: %d %s", input, code, text)
		}
		_, text = ask(t, url+"/v1/embeddings", fmt.Sprintf(`{"model":"tiny","encoding_format":"base64","input":%s}`, input))
		coded := decode[struct{ Data []struct{ Embedding string } }](t, text)
		for i, d := range got.Data {
			length, v := 0.0, make([]float32, embeddingSize)
			raw, err := base64.StdEncoding.DecodeString(coded.Data[i].Embedding)
			if _, derr := binary.Decode(raw, binary.LittleEndian, v); err != nil || derr != nil || !slices.Equal(v, d.Embedding) {
				t.Errorf("%s: %v and %v (%v, %v)", input, d.Embedding, v, err, derr)
			}
			for _, x := range d.Embedding {
				length += float64(x) * float64(x)
			}
			if math.Abs(length-1) > 1e-4 {
				t.Errorf("%s: length %v", input, length)
			}
		}
	}
}

// TestErrorsByKind: Anthropic's clients get their API's error, except where vLLM's schema refuses before.
func TestErrorsByKind(t *testing.T) {
	url, _ := start(t, nil)
	for _, c := range []struct {
		path, body string
		code       int
		want       string // the start of the answer
	}{
		{"/v1/messages", `{"model":"nope","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`, 404, `{"type":"error","error":{"type":"NotFoundError"`},
		{"/v1/messages/count_tokens", `{"model":"nope","messages":[{"role":"user","content":"x"}]}`, 404, `{"type":"error"`},
		{"/v1/messages", `{"model":"tiny","max_tokens":10000000,"messages":[{"role":"user","content":"x"}]}`, 400, `{"type":"error"`},
		{"/v1/messages", `{"model":"tiny","messages":[{"role":"user","content":"x"}]}`, 400, `{"error":{`}, // no max_tokens
		{"/v1/messages", `{`, 400, `{"error":{`},
		{"/v1/responses", `{"model":"nope","input":"x"}`, 404, `{"error":{`},
		{"/v1/responses", `{"model":"tiny","input":"x","previous_response_id":"resp_1"}`, 404, `{"error":{"message":"Response with id 'resp_1' not found."`},
		{"/v1/responses", `{"model":"tiny"}`, 400, `{"error":{`},
		{"/v1/embeddings", `{"model":"tiny","input":{}}`, 400, `{"error":{"message":"input must be`},
	} {
		if code, text := ask(t, url+c.path, c.body); code != c.code || !strings.HasPrefix(text, c.want) {
			t.Errorf("%s %s: %d %s", c.path, c.body, code, text)
		}
	}
}
