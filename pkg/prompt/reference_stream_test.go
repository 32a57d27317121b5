package prompt

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// said is a message: who says it, and its part of the canonical stream.
type said struct {
	role string
	out  []byte
}

// stream builds the canonical stream of a chat, message by message.
type stream struct {
	all   []said
	media int
}

func (s *stream) write(b ...byte) {
	last := &s.all[len(s.all)-1]
	last.out = append(last.out, b...)
}

// message begins one; role is nil where the body does not spell it.
func (s *stream) message(role json.RawMessage, name string) {
	if role != nil {
		name = plainString(role)
		s.all = append(s.all, said{name, append([]byte{0xFF, 'M'}, valueOf(role)...)})
		return
	}
	s.all = append(s.all, said{name, append([]byte{0xFF, 'M'}, name...)})
}

func (s *stream) put(tag byte, raw json.RawMessage) {
	if !null(raw) {
		s.always(tag, raw)
	}
}

func (s *stream) always(tag byte, raw json.RawMessage) {
	s.write(append([]byte{0xFF, tag}, valueOf(raw)...)...)
}

func (s *stream) medium(raw json.RawMessage) {
	if null(raw) {
		return
	}
	s.write(0xFF, 'V')
	sum := binary.LittleEndian.AppendUint64(nil, xxhash.Sum64(tokens(raw)))
	if s.media++; s.media > MaxMedia {
		s.write(sum...)
		return
	}
	s.write(bytes.Repeat(sum, MediaTokens*4/8)...)
}

func (s *stream) part(text byte, raw json.RawMessage) {
	if raw[0] != '{' {
		s.put(text, raw)
		return
	}
	m, known := object(raw), false
	for _, k := range []string{"text", "refusal", "thinking"} {
		_, ok := m[k]
		known = known || ok
		s.put(text, m[k])
	}
	for _, k := range []string{
		"image_url", "image_embeds", "video_url", "audio_url", "audio_embeds", "input_audio", "file", "file_data", "file_id", "file_url", "source",
	} {
		_, ok := m[k]
		known = known || ok
		s.medium(m[k])
	}
	_, ok := m["uuid"]
	s.put('U', m["uuid"])
	if !known && !ok {
		s.medium(raw)
	}
}

func (s *stream) content(text byte, raw json.RawMessage) {
	parts, ok := array(raw)
	if !ok {
		s.put(text, raw)
	}
	for _, part := range parts {
		s.part(text, part)
	}
}

func (s *stream) chat(m map[string]json.RawMessage) {
	role := m["role"]
	if role == nil {
		role = json.RawMessage("null")
	}
	s.message(role, "")
	s.content('X', m["content"])
	s.put('N', m["name"])
	s.put('I', m["tool_call_id"])
	s.put('R', m["reasoning"])
	s.put('R', m["reasoning_content"])
	calls, ok := array(m["tool_calls"])
	if !ok {
		s.put('C', m["tool_calls"])
	}
	for _, call := range calls {
		if call[0] != '{' {
			s.always('C', call)
			continue
		}
		c := object(call)
		name := c["function"]
		var arguments json.RawMessage
		if len(name) > 0 && name[0] == '{' {
			f := object(name)
			name, arguments = f["name"], f["arguments"]
		}
		s.always('C', name)
		s.put('I', c["id"])
		s.put('A', arguments)
	}
}

// nothing reports whether a value is none, or an empty object or array.
func nothing(raw json.RawMessage) bool {
	return null(raw) || len(tokens(raw)) == 4 && (raw[0] == '{' || raw[0] == '[')
}

// ordered is the stream of a conversation with the tools in their place, one order for each position.
func ordered(at ToolsPosition, tools []byte, all []said) (out []byte) {
	where := 0
	switch at {
	case ToolsFirst:
	case ToolsBeforeLastUser:
		for where = len(all); where > 0 && all[where-1].role != "user"; where-- {
		}
		if where--; where < 0 {
			where = len(all)
		}
	default:
		for where < len(all) && (all[where].role == "system" || all[where].role == "developer") {
			where++
		}
	}
	for _, m := range slices.Insert(slices.Clone(all), where, said{"", tools}) {
		out = append(out, m.out...)
	}
	return out
}

// conversationOf is the stream of a chat as an API has it, its tools as the API of the path has them; false if
// a message is no object, and stored if one is kept by the server.
func conversationOf(path, api API, at ToolsPosition, m map[string]json.RawMessage, messages []json.RawMessage) (out []byte, stored, ok bool) {
	var s stream
	var tools []byte
	if !nothing(m["tools"]) {
		tools = append([]byte{0xFF, 'T'}, tokens(m["tools"])...)
	}
	if path == APIMessages || path == APICount {
		tools = anthropicTools(m["tools"])
	}
	switch api {
	case APIMessages, APICount:
		s.anthropicSystem(m["system"])
	case APIResponses:
		if v := m["instructions"]; !null(v) && string(v) != `""` {
			s.message(nil, "system")
			s.always('X', v)
		}
	}
	for _, raw := range messages {
		if raw[0] != '{' {
			return nil, false, false
		}
		switch m := object(raw); api {
		case APIMessages, APICount:
			s.anthropic(m)
		case APIResponses:
			stored = s.item(raw, m) || stored
		default:
			s.chat(m)
		}
	}
	return ordered(at, tools, s.all), stored, true
}

var digits = regexp.MustCompile(`^[0-9]+$`)

// idsOf is the stream of token ids.
func idsOf(items []json.RawMessage) ([]byte, bool) {
	out := []byte{}
	for _, it := range items {
		v, err := strconv.ParseUint(string(it), 10, 32)
		if err != nil || !digits.Match(it) {
			return nil, false
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(v))
	}
	return out, true
}

// itemOf is the stream of one prompt of a batch.
func itemOf(raw json.RawMessage) (out []byte, ids, ok bool) {
	if raw[0] == '"' {
		return decoded(raw), false, true
	}
	items, ok := array(raw)
	if !ok {
		return nil, false, false
	}
	out, ok = idsOf(items)
	return out, true, ok
}
