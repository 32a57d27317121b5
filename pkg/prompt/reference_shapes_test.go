package prompt

import (
	"bytes"
	"encoding/json"
)

// item adds an item of a Responses input, and reports whether it only names what the server keeps.
func (s *stream) item(raw json.RawMessage, m map[string]json.RawMessage) bool {
	switch plainString(m["type"]) {
	case "function_call", "custom_tool_call":
		s.message(nil, "assistant")
		s.always('C', m["name"])
		s.put('I', m["call_id"])
		if plainString(m["type"]) == "function_call" {
			s.put('A', m["arguments"])
			s.put('N', m["namespace"])
		} else {
			s.put('X', m["input"])
		}
	case "function_call_output", "custom_tool_call_output":
		s.message(nil, "tool")
		s.content('X', m["output"])
		s.put('I', m["call_id"])
	case "reasoning":
		s.message(nil, "assistant")
		if nothing(m["content"]) {
			s.content('R', m["summary"])
		} else {
			s.content('R', m["content"])
		}
	case "item_reference":
		return true
	default:
		if m["role"] != nil {
			s.chat(m)
			return false
		}
		s.message(nil, "assistant")
		s.medium('f', raw)
	}
	return false
}

func isEmpty(raw json.RawMessage) bool { return null(raw) || string(raw) == `""` }

// joined adds the texts of a system prompt as one.
func (s *stream) joined(blocks []json.RawMessage) {
	begun := false
	for _, raw := range blocks {
		if raw[0] == '{' {
			m := object(raw)
			if kind := plainString(m["type"]); kind == "text" {
				raw = m["text"]
			} else if kind == "tool_addition" || kind == "tool_removal" {
				continue
			} else if known := blockKinds[kind]; known || m["text"] == nil {
				continue
			} else {
				raw = m["text"]
			}
		}
		if isEmpty(raw) || bytes.HasPrefix([]byte(plainString(raw)), []byte("x-anthropic-billing-header")) {
			continue
		}
		if !begun {
			s.message(nil, "system")
			s.write(0xFF, 'X')
			begun = true
		}
		s.write(valueOf(raw)...)
	}
}

var blockKinds = map[string]bool{
	"text": true, "tool_result": true, "image": true, "document": true, "thinking": true, "tool_use": true,
	"redacted_thinking": true, "tool_reference": true, "tool_addition": true, "tool_removal": true,
}

func (s *stream) anthropicSystem(raw json.RawMessage) {
	if blocks, ok := array(raw); ok {
		s.joined(blocks)
	} else if len(raw) > 0 && raw[0] == '{' {
		s.joined([]json.RawMessage{raw})
	} else if !isEmpty(raw) {
		s.message(nil, "system")
		s.system = true
		s.put('X', raw)
		s.system = false
	}
}

// anthropic adds a message: what tools answered first, then the rest of it.
func (s *stream) anthropic(m map[string]json.RawMessage) {
	role := m["role"]
	if role == nil {
		role = json.RawMessage("null")
	}
	blocks, list := array(m["content"])
	if c := m["content"]; len(c) > 0 && c[0] == '{' {
		blocks, list = []json.RawMessage{c}, true
	}
	kind := func(b json.RawMessage) string {
		if b[0] != '{' {
			return ""
		}
		return plainString(object(b)["type"])
	}
	for _, b := range blocks {
		switch kind(b) {
		case "tool_result":
			s.toolResult(object(b))
		case "tool_addition", "tool_removal":
			s.changes = append(append(s.changes, 0xFF, 'T'), tokens(b)...)
		}
	}
	if plainString(role) == "system" {
		if !list && !isEmpty(m["content"]) {
			blocks = []json.RawMessage{m["content"]}
		}
		s.joined(blocks)
		return
	}
	before := len(s.all)
	s.message(role, "")
	bare := len(s.all[before].out)
	if !list && !isEmpty(m["content"]) {
		s.put('X', m["content"])
	}
	var thoughts, calls []json.RawMessage
	for _, b := range blocks {
		switch kind(b) {
		case "tool_result", "redacted_thinking", "tool_reference":
		case "tool_addition", "tool_removal":
		case "text":
			if v := object(b)["text"]; !isEmpty(v) {
				s.always('X', v)
			}
		case "image":
			s.medium('i', object(b)["source"])
		case "document":
			s.medium('f', object(b)["source"])
		case "thinking":
			thoughts = append(thoughts, object(b)["thinking"])
		case "tool_use":
			calls = append(calls, b)
		default:
			s.part('X', b)
		}
	}
	if plainString(role) == "user" && len(s.all[before].out) == bare && (list || m["content"] == nil) {
		s.all = s.all[:before]
		return
	}
	if out := s.all[before].out; len(out) == bare+2 && out[bare+1] == 'X' { // one empty text
		s.all[before].out = out[:bare]
	}
	first := true
	for _, v := range thoughts {
		if null(v) {
			continue
		}
		if first {
			s.write(0xFF, 'R')
		}
		first = false
		s.write(valueOf(v)...)
	}
	for _, call := range calls {
		c := object(call)
		s.always('C', c["name"])
		s.put('I', c["id"])
		if !nothing(c["input"]) {
			s.always('A', c["input"])
		}
	}
}

func (s *stream) toolResult(m map[string]json.RawMessage) {
	s.message(nil, "tool")
	parts, list := array(m["content"])
	text, images, references := valueOf(m["content"]), []json.RawMessage{}, []json.RawMessage{}
	if list {
		var texts [][]byte
		for _, p := range parts {
			if p[0] != '{' {
				continue
			}
			switch one := object(p); plainString(one["type"]) {
			case "text":
				texts = append(texts, valueOf(one["text"]))
			case "image":
				if v := one["source"]; !null(v) {
					images = append(images, v)
				}
			case "tool_reference":
				v := one["tool_name"]
				if isEmpty(v) {
					v = one["name"]
				}
				if !null(v) {
					references = append(references, v)
				}
			}
		}
		text = bytes.Join(texts, []byte("\n"))
	}
	s.write(0xFF, 'X')
	s.write(text...)
	s.put('I', m["tool_use_id"])
	if len(images) > 0 {
		s.message(nil, "user")
		for _, v := range images {
			s.medium('i', v)
		}
	}
	if len(references) > 0 {
		s.message(nil, "tool")
		for _, v := range references {
			s.always('F', v)
		}
		s.put('I', m["tool_use_id"])
	}
}
