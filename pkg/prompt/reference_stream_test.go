package prompt

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// stream builds the canonical stream of a chat.
type stream struct {
	out   []byte
	media int
}

func (s *stream) put(tag byte, raw json.RawMessage) {
	if !null(raw) {
		s.out = append(append(s.out, 0xFF, tag), valueOf(raw)...)
	}
}

func (s *stream) always(tag byte, raw json.RawMessage) {
	s.out = append(append(s.out, 0xFF, tag), valueOf(raw)...)
}

func (s *stream) medium(raw json.RawMessage) {
	if null(raw) {
		return
	}
	s.out = append(s.out, 0xFF, 'V')
	sum := binary.LittleEndian.AppendUint64(nil, xxhash.Sum64(tokens(raw)))
	if s.media++; s.media > MaxMedia {
		s.out = append(s.out, sum...)
		return
	}
	s.out = append(s.out, bytes.Repeat(sum, MediaTokens*4/8)...)
}

func (s *stream) part(raw json.RawMessage) {
	if raw[0] != '{' {
		s.put('X', raw)
		return
	}
	m, known := object(raw), false
	for _, k := range []string{"text", "refusal", "thinking"} {
		_, ok := m[k]
		known = known || ok
		s.put('X', m[k])
	}
	for _, k := range []string{"image_url", "image_embeds", "video_url", "audio_url", "audio_embeds", "input_audio", "file"} {
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

func (s *stream) message(m map[string]json.RawMessage) {
	s.always('M', m["role"])
	s.put('N', m["name"])
	s.put('I', m["tool_call_id"])
	s.put('R', m["reasoning"])
	s.put('R', m["reasoning_content"])
	if parts, ok := array(m["content"]); ok {
		for _, part := range parts {
			s.part(part)
		}
	} else {
		s.put('X', m["content"])
	}
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

// chatOf is the stream of a chat; false if a message is no object.
func chatOf(tools json.RawMessage, messages []json.RawMessage) ([]byte, bool) {
	var s stream
	if !null(tools) {
		s.out = append(append(s.out, 0xFF, 'T'), tokens(tools)...)
	}
	for _, m := range messages {
		if m[0] != '{' {
			return nil, false
		}
		s.message(object(m))
	}
	return s.out, true
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
