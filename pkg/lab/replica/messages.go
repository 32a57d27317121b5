package replica

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// messagesRequest is what the server reads of a body of Anthropic's messages API.
type messagesRequest struct {
	Model     string          `json:"model"`
	System    blocks          `json:"system"`
	Messages  []blockMessage  `json:"messages"`
	Tools     json.RawMessage `json:"tools"`
	MaxTokens *int            `json:"max_tokens"`
	CacheSalt string          `json:"cache_salt"`
	Stream    bool            `json:"stream"`
}

type blockMessage struct {
	Role    string `json:"role"`
	Content blocks `json:"content"`
}

// block is a piece of a message; content holds what it adds to the message's text.
type block struct {
	Type   string
	Text   string
	call   json.RawMessage // of tool_use: the whole block
	result content         // of tool_result
	content
}

// blocks is a message's content: a list of blocks, or a string, which is one of text.
type blocks []block

func (b *blocks) UnmarshalJSON(raw []byte) error {
	if raw[0] != '[' {
		var text content
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		*b = blocks{{Type: "text", Text: string(text), content: text}}
		return nil
	}
	return json.Unmarshal(raw, (*[]block)(b))
}

func (b *block) UnmarshalJSON(raw []byte) error {
	var fields struct {
		Type    string  `json:"type"`
		Text    string  `json:"text"`
		Content content `json:"content"`
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	b.Type, b.Text = fields.Type, fields.Text
	switch b.Type {
	case "tool_use":
		b.call = append(b.call, raw...)
	case "tool_result":
		b.result = fields.Content
	case "redacted_thinking": // vLLM drops it
	default:
		return b.addPart(raw)
	}
	return nil
}

// billing begins a system block that differs from request to request, which vLLM drops so that prefixes are shared.
const billing = "x-anthropic-billing-header"

// chat is the request as a chat, as vLLM makes one of it: results of tools are messages of their own, before the rest
// of the message that brought them.
func (m *messagesRequest) chat() *request {
	r := &request{Model: m.Model, Tools: m.Tools, MaxTokens: m.MaxTokens, CacheSalt: m.CacheSalt, Stream: m.Stream}
	var system content
	for _, b := range m.System {
		if !strings.HasPrefix(b.Text, billing) {
			system = append(system, b.content...)
		}
	}
	if len(system) > 0 {
		r.Messages = append(r.Messages, message{Role: "system", Content: system})
	}
	for _, from := range m.Messages {
		rest := message{Role: from.Role}
		for _, b := range from.Content {
			if b.Type == "tool_result" {
				r.Messages = append(r.Messages, message{Role: "tool", Content: b.result})
			}
			rest.Content = append(rest.Content, b.content...)
			rest.ToolCalls = append(rest.ToolCalls, b.call...)
		}
		if len(rest.Content) > 0 || len(rest.ToolCalls) > 0 {
			r.Messages = append(r.Messages, rest)
		}
	}
	return r
}

// anthropic writes a job's answer as Anthropic's messages API does.
type anthropic struct{ *job }

// anthropicUsage counts cached tokens apart from those of the input.
type anthropicUsage struct {
	Input   int `json:"input_tokens"`
	Output  int `json:"output_tokens"`
	Created int `json:"cache_creation_input_tokens"`
	Cached  int `json:"cache_read_input_tokens"`
}

func (a anthropic) usage() anthropicUsage {
	u := a.job.usage()
	return anthropicUsage{u.Prompt - u.Details.Cached, u.Completion, 0, u.Details.Cached}
}

func (a anthropic) stopReason() string {
	if a.seqs[0].reason == "length" {
		return "max_tokens"
	}
	return "end_turn"
}

func (a anthropic) answer() any {
	type text struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	return struct {
		ID      string          `json:"id"`
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content []text          `json:"content"`
		Model   json.RawMessage `json:"model"`
		Reason  string          `json:"stop_reason"`
		Usage   anthropicUsage  `json:"usage"`
	}{a.id, "message", "assistant", []text{{"text", string(answer(nil, 0, a.seqs[0].Output))}}, json.RawMessage(a.model), a.stopReason(), a.usage()}
}

func (a anthropic) open(buf []byte) []byte { return buf }

func (a anthropic) first(buf []byte, _ int) []byte {
	buf = fmt.Appendf(buf, `event: message_start`+"\n"+`data: {"type":"message_start","message":{"id":%q,"type":"message","role":"assistant",`+
		`"content":[],"model":%s,"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":0}}}`+"\n\n", a.id, a.model, a.prompts)
	return append(buf, `event: content_block_start`+"\n"+`data: {"type":"content_block_start","content_block":{"type":"text","text":""},"index":0}`+"\n\n"...)
}

func (a anthropic) chunk(buf []byte, _, from, to int) []byte {
	buf = append(buf, `event: content_block_delta`+"\n"+`data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"`...)
	return append(answer(buf, from, to), `"},"index":0}`+"\n\n"...)
}

func (a anthropic) end(buf []byte) []byte {
	counts, _ := json.Marshal(a.usage()) // whole numbers always have a JSON form
	buf = append(buf, `event: content_block_stop`+"\n"+`data: {"type":"content_block_stop","index":0}`+"\n\n"...)
	buf = append(buf, `event: message_delta`+"\n"+`data: {"type":"message_delta","delta":{"stop_reason":`...)
	buf = strconv.AppendQuote(buf, a.stopReason())
	buf = append(buf, `,"stop_sequence":null},"usage":`...)
	buf = append(append(buf, counts...), "}\n\n"...)
	return append(buf, `event: message_stop`+"\n"+`data: {"type":"message_stop"}`+"\n\n"...)
}
