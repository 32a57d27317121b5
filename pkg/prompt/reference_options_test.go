package prompt

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// options is what stands before all else.
func options(path, api API, m map[string]json.RawMessage) (out []byte) {
	if v := m["documents"]; api == APIChat && !nothing(v) {
		out = append(append(out, "\xffOdocuments"...), tokens(v)...)
	}
	if api == APIChat {
		out = append(out, optionOf("chat_template", m["chat_template"])...)
	}
	if v := m["add_special_tokens"]; api == APIChat && string(v) == "true" {
		out = append(out, optionOf("add_special_tokens", v)...)
	}
	var effort json.RawMessage
	switch path {
	case APIChat:
		effort = m["reasoning_effort"]
	case APIResponses:
		effort = object(m["reasoning"])["effort"]
	case APIMessages, APICount:
		effort = object(m["output_config"])["effort"]
		if v := object(m["thinking"])["type"]; plainString(v) == "disabled" {
			effort = v
		}
	}
	return append(out, optionOf("effort", effort)...)
}

func optionOf(name string, raw json.RawMessage) []byte {
	if nothing(raw) || isEmpty(raw) {
		return nil
	}
	return binary.LittleEndian.AppendUint64([]byte("\xffO"+name), hashOf(raw))
}

// toolsOf is the stream of tools, whichever API has them.
func toolsOf(raw json.RawMessage) (out []byte) {
	list, ok := array(raw)
	if !ok && !nothing(raw) {
		return append([]byte{0xFF, 'T'}, tokens(raw)...)
	}
	for _, tool := range list {
		out = append(out, 0xFF, 'T')
		m := object(tool)
		deferred := m["defer_loading"]
		switch f := m["function"]; {
		case tool[0] == '{' && len(f) > 0 && f[0] == '{':
			m = object(f)
		case m["parameters"] == nil && m["input_schema"] == nil && plainString(m["type"]) != "function":
			out = append(out, tokens(tool)...)
			continue
		}
		if v := m["name"]; v != nil {
			out = append(out, tokens(v)...)
		}
		if m["parameters"] == nil {
			m["parameters"] = m["input_schema"]
		}
		if null(m["defer_loading"]) {
			m["defer_loading"] = deferred
		}
		for _, k := range []struct {
			tag  byte
			name string
		}{{'X', "description"}, {'A', "parameters"}, {'S', "strict"}, {'D', "defer_loading"}} {
			if v := m[k.name]; !null(v) {
				out = append(append(out, 0xFF, k.tag), valueOf(v)...)
			}
		}
	}
	return out
}

// unsigned is a text of a system message without an attribution; nil if nothing is left of it.
func unsigned(raw json.RawMessage) json.RawMessage {
	text := plainString(raw)
	if !strings.HasPrefix(text, "x-anthropic-billing-header") {
		return raw
	}
	if _, rest, _ := strings.Cut(text, "\n"); rest == "" {
		return nil
	}
	inner := string(raw)
	for i := 0; i < len(inner); i++ { // the first escape that is a line break: what stands behind it, as spelled
		if inner[i] != '\\' {
			continue
		}
		if inner[i+1] == 'n' {
			return json.RawMessage(`"` + inner[i+2:])
		}
		if strings.HasPrefix(strings.ToLower(inner[i:]), `\u000a`) {
			return json.RawMessage(`"` + inner[i+6:])
		}
		i++
	}
	panic("a line break that is no escape")
}

// medium adds a medium of a kind: 'i'mage, 'v'ideo, audi'o', 'f'ile or 'e'mbeddings, and 0x80 with it for one by its uuid.
func (s *stream) medium(kind byte, raw json.RawMessage) {
	if null(raw) {
		return
	}
	s.write(0xFF, 'V')
	content := uint64(0)
	if raw[0] == '{' && kind < 0x80 {
		m := object(raw)
		if v := m["url"]; !null(v) {
			content = hashOf(v)
		}
		for i, name := range []string{"data", "file_data", "file_id"} {
			if v := m[name]; !null(v) {
				content = folded(folded(content, uint64(i+1)), hashOf(v))
			}
		}
	}
	if content == 0 {
		content = hashOf(raw)
	}
	sum := binary.LittleEndian.AppendUint64(nil, folded(folded(s.about, uint64(kind)), content))
	if s.media++; s.media > MaxMedia {
		s.write(sum...)
		return
	}
	s.write(bytes.Repeat(sum, MediaTokens*4/8)...)
}

// hashOf is the hash of a value whatever the order of the members of its objects.
func hashOf(raw json.RawMessage) uint64 {
	all := lex(raw)
	var value func() uint64
	value = func() uint64 {
		t := all[0]
		all = all[1:]
		sum := uint64(0)
		switch t.kind {
		case '{':
			for all[0].kind != '}' {
				key := value()
				sum += folded(key, value())
			}
		case '[':
			for all[0].kind != ']' {
				sum = folded(sum, value())
			}
		default:
			return folded(uint64(t.kind), xxhash.Sum64(t.out[2:]))
		}
		all = all[1:]
		return folded(uint64(t.kind), sum)
	}
	return value()
}

func folded(a, b uint64) uint64 {
	return xxhash.Sum64(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, a), b))
}
