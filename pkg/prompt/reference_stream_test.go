package prompt

import (
	"encoding/binary"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
)

// spoken is a message: who says it, and its part of the canonical stream.
type spoken struct {
	role string
	out  []byte
}

// stream builds the canonical stream of a chat, message by message.
type stream struct {
	all   []spoken
	media int
	about uint64

	api     API
	changes []byte // of tools

	system bool // texts are those of a system message
}

func (s *stream) write(b ...byte) {
	last := &s.all[len(s.all)-1]
	last.out = append(last.out, b...)
}

// message begins one; role is nil where the body does not spell it.
func (s *stream) message(role json.RawMessage, name string) {
	if role != nil {
		name = plainString(role)
		s.all = append(s.all, spoken{name, append([]byte{0xFF, 'M'}, valueOf(role)...)})
		return
	}
	s.all = append(s.all, spoken{name, append([]byte{0xFF, 'M'}, name...)})
}

func (s *stream) put(tag byte, raw json.RawMessage) {
	if s.system {
		raw = unsigned(raw)
	}
	if !null(raw) {
		s.always(tag, raw)
	}
}

func (s *stream) always(tag byte, raw json.RawMessage) {
	s.write(append([]byte{0xFF, tag}, valueOf(raw)...)...)
}

// kinds are the members of a part that may count, by what it is, with the kind of each; X is a text.
var kinds = map[string][]string{
	"text": {"X text"}, "refusal": {"X refusal"}, "thinking": {"X thinking"}, "reference": {"F name"}, "embeds": {"e data"},
	"image": {"i image_url", "i image_embeds", "f file_id", "f source"},
	"video": {"v video_url", "v video_embeds"},
	"audio": {"o audio_url", "o audio_embeds", "o input_audio"},
	"file":  {"f file", "f file_data", "f file_id", "f file_url", "f source"},
	"": {
		"X text", "X refusal", "X thinking", "i image_url", "i image_embeds", "v video_url", "v video_embeds", "o audio_url", "o audio_embeds",
		"o input_audio", "f file", "f file_data", "f file_id", "f file_url", "f source",
	},
}

var kindOf = map[string]string{
	"text": "text", "input_text": "text", "output_text": "text", "summary_text": "text", "reasoning_text": "text",
	"refusal": "refusal", "thinking": "thinking", "tool_reference": "reference", "prompt_embeds": "embeds",
	"image_url": "image", "input_image": "image", "image_embeds": "image", "video_url": "video", "video_embeds": "video",
	"audio_url": "audio", "input_audio": "audio", "audio_embeds": "audio", "file": "file", "input_file": "file",
}

func (s *stream) part(text byte, raw json.RawMessage) {
	if raw[0] != '{' {
		s.put(text, raw)
		return
	}
	m := object(raw)
	kind, known := kindOf[plainString(m["type"])]
	for _, k := range kinds[kind] {
		v, there := m[k[2:]]
		known = known || there
		switch tag := k[0]; {
		case !there:
		case tag == 'X':
			s.put(text, v)
		case tag == 'F':
			s.put('F', v)
		case tag != 'e' && !null(m["uuid"]):
			s.medium(tag|0x80, m["uuid"])
			return
		default:
			s.medium(tag, v)
		}
	}
	if !known {
		s.medium('f', raw)
	}
}

// content adds a content, but for one that is an empty text.
func (s *stream) content(text byte, raw json.RawMessage) {
	last := &s.all[len(s.all)-1]
	before := len(last.out)
	defer func() {
		if len(last.out) == before+2 && last.out[before+1] == text {
			last.out = last.out[:before]
		}
	}()
	parts, ok := array(raw)
	switch {
	case ok:
	case len(raw) > 0 && raw[0] == '{':
		s.part(text, raw)
	default:
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
	_, list := array(m["content"])
	list = list || len(m["content"]) > 0 && m["content"][0] == '{'
	s.system = plainString(role) == "system" && !(list && s.api == APIResponses)
	s.content('X', m["content"])
	s.system = false
	if plainString(role) == "developer" && !nothing(m["tools"]) {
		s.write(append([]byte{0xFF, 'T'}, tokens(m["tools"])...)...)
	}
	s.put('N', m["name"])
	s.put('I', m["tool_call_id"])
	s.put('K', m["task"])
	if null(m["reasoning"]) {
		m["reasoning"] = m["reasoning_content"]
	}
	s.put('R', m["reasoning"])
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
func ordered(at ToolsPosition, tools []byte, all []spoken) (out []byte) {
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
	for _, m := range slices.Insert(slices.Clone(all), where, spoken{"", tools}) {
		out = append(out, m.out...)
	}
	return out
}

// conversationOf is the stream of a chat as an API has it, its tools as the API of the path has them; false if
// a message is no object, and stored if one is kept by the server.
func conversationOf(path, api API, at ToolsPosition, m map[string]json.RawMessage, messages []json.RawMessage) (out []byte, stored, ok bool) {
	s := stream{api: api}
	head, tools := options(path, api, m), toolsOf(m["tools"])
	for i, k := range []string{"mm_processor_kwargs", "media_io_kwargs"} {
		if !nothing(m[k]) {
			s.about = folded(s.about, folded(uint64(i), hashOf(m[k])))
		}
	}
	switch api {
	case APIMessages, APICount:
		s.anthropicSystem(m["system"])
	case APIResponses:
		if v := m["instructions"]; !isEmpty(v) {
			s.message(nil, "system")
			s.system = true
			s.put('X', v)
			s.system = false
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
	tools = append(append(tools, s.changes...), optionOf("chat_template_kwargs", m["chat_template_kwargs"])...)
	return append(head, ordered(at, tools, s.all)...), stored, true
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
