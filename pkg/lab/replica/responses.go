package replica

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// responsesRequest is what the server reads of a body of OpenAI's responses API.
type responsesRequest struct {
	Model        string          `json:"model"`
	Input        items           `json:"input"`
	Instructions string          `json:"instructions"`
	Tools        json.RawMessage `json:"tools"`
	MaxTokens    *int            `json:"max_output_tokens"`
	CacheSalt    string          `json:"cache_salt"`
	Previous     string          `json:"previous_response_id"`
	Stream       bool            `json:"stream"`
}

// items is a conversation: a list of items, or a string, which is a message of the user's.
type items []message

func (i *items) UnmarshalJSON(raw []byte) error {
	if raw[0] != '[' {
		m := message{Role: "user"}
		err := json.Unmarshal(raw, &m.Content)
		if *i = nil; len(m.Content) > 0 {
			*i = items{m}
		}
		return err
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	for _, one := range all {
		var item struct {
			Type    string  `json:"type"`
			Role    string  `json:"role"`
			Content content `json:"content"`
			Output  content `json:"output"`
		}
		if err := json.Unmarshal(one, &item); err != nil {
			return err
		}
		switch item.Type {
		case "function_call":
			*i = append(*i, message{Role: "assistant", ToolCalls: one})
		case "function_call_output":
			*i = append(*i, message{Role: "tool", Content: item.Output})
		default:
			*i = append(*i, message{Role: item.Role, Content: item.Content})
		}
	}
	return nil
}

// chat is the request as a chat. The server stores no answers, as vLLM does not by default, so that it knows no
// previous one: the error is an *apiError.
func (m *responsesRequest) chat() (*request, error) {
	if m.Previous != "" {
		return nil, &apiError{http.StatusNotFound, fmt.Sprintf("Response with id '%s' not found.", m.Previous), "invalid_request_error", "response_id"}
	}
	r := &request{Model: m.Model, Tools: m.Tools, MaxTokens: m.MaxTokens, CacheSalt: m.CacheSalt, Stream: m.Stream}
	if m.Instructions != "" && len(m.Input) > 0 {
		r.Messages = append(r.Messages, message{Role: "system", Content: content(m.Instructions)})
	}
	r.Messages = append(r.Messages, m.Input...)
	return r, nil
}

// response writes a job's answer as OpenAI's responses API does. Its events are numbered.
type response struct {
	*job
	events int
}

type object = map[string]any

func (r *response) item(status string, content ...object) object {
	return object{"id": "msg_" + r.id, "type": "message", "role": "assistant", "status": status, "content": append([]object{}, content...), "phase": nil}
}

func (r *response) text(tokens int) object {
	return object{"type": "output_text", "text": string(answer(nil, 0, tokens)), "annotations": []any{}, "logprobs": nil}
}

// object is the response as it stands before its answer, and after.
func (r *response) object(over bool) object {
	o := object{"id": "resp_" + r.id, "object": "response", "created_at": r.created, "model": json.RawMessage(r.model), "status": "in_progress",
		"output": []any{}, "usage": nil, "incomplete_details": nil, "instructions": nil, "metadata": nil, "parallel_tool_calls": true,
		"temperature": 1.0, "top_p": 1.0, "tool_choice": "auto", "tools": []any{}, "background": false, "max_output_tokens": r.seqs[0].Output,
		"previous_response_id": nil, "service_tier": "auto", "text": nil, "truncation": "disabled"}
	if !over {
		return o
	}
	u := r.usage()
	o["usage"] = object{"input_tokens": u.Prompt, "output_tokens": u.Completion, "total_tokens": u.Total,
		"input_tokens_details":  object{"cached_tokens": u.Details.Cached, "cache_write_tokens": 0},
		"output_tokens_details": object{"reasoning_tokens": 0, "tool_output_tokens": 0}}
	if o["status"] = "completed"; r.seqs[0].reason == "length" {
		o["status"], o["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	}
	o["output"] = []object{r.item("completed", r.text(r.seqs[0].Output))}
	return o
}

func (r *response) answer() any { return r.object(true) }

// event appends one event with its number.
func (r *response) event(buf []byte, name string, fields object) []byte {
	fields["type"], fields["sequence_number"] = name, r.events
	r.events++
	data, _ := json.Marshal(fields) // strings and whole numbers always have a JSON form
	return fmt.Appendf(buf, "event: %s\ndata: %s\n\n", name, data)
}

// part is what an event of the one part of the one item has, and more.
func (r *response) part(name string, value any) object {
	return object{"item_id": "msg_" + r.id, "output_index": 0, "content_index": 0, name: value}
}

func (r *response) open(buf []byte) []byte {
	buf = r.event(buf, "response.created", object{"response": r.object(false)})
	return r.event(buf, "response.in_progress", object{"response": r.object(false)})
}

func (r *response) first(buf []byte, _ int) []byte {
	buf = r.event(buf, "response.output_item.added", object{"output_index": 0, "item": r.item("in_progress")})
	return r.event(buf, "response.content_part.added", r.part("part", r.text(0)))
}

func (r *response) chunk(buf []byte, _, from, to int) []byte {
	fields := r.part("delta", string(answer(nil, from, to)))
	fields["logprobs"] = []any{}
	return r.event(buf, "response.output_text.delta", fields)
}

func (r *response) end(buf []byte) []byte {
	n := r.seqs[0].Output
	fields := r.part("text", string(answer(nil, 0, n)))
	fields["logprobs"] = []any{}
	buf = r.event(buf, "response.output_text.done", fields)
	buf = r.event(buf, "response.content_part.done", r.part("part", r.text(n)))
	buf = r.event(buf, "response.output_item.done", object{"output_index": 0, "item": r.item("completed", r.text(n))})
	return r.event(buf, "response.completed", object{"response": r.object(true)})
}
