package prompt

import (
	"bytes"
	"strings"
)

// An Anthropic body is read as vLLM makes a chat of it (entrypoints/anthropic/serving.py), so that what vLLM
// drops or joins breaks no prefix that its cache shares:
//
//   - the text blocks of system are one text; one with an attribution header, which holds a hash of the
//     request, is dropped (of a system that is a string, its first line), and so are empty texts and redacted_thinking;
//   - results of tools are messages of their own before the rest of their message, their texts joined by a line break,
//     their images in a message of the user behind them, and the tools they refer to in one more;
//   - of a tool only what the model sees counts, which cache_control is not; changes of tools stand with the tools,
//     wherever in the conversation they were made.
//
// Where a template wants the system text first (Qwen's do), vLLM puts the texts of all later system messages there
// too: weir, which cannot know, then takes more of such a prompt to be held than is. A result of a tool in a message
// of the assistant, which no client sends, is a text of it to vLLM.
//
// A call's arguments are written token by token where a chat has them as a string, which counts as spelled, though vLLM
// parses it: a conversation here and the same one as a chat need not have equal chains.

// attribution begins a text that names the client and the request.
const attribution = "x-anthropic-billing-header"

// system records the system prompt.
func (p *Parser) system(m *members) {
	s := &p.scan
	p.head = p.head[:0]
	if c := s.peek(); c == '[' || c == '{' {
		n, changes := len(p.fields), len(p.changes)
		p.blocks()
		p.fields, p.changes = p.fields[:n], p.changes[:changes] // results and changes of tools are no part of a system prompt
		p.head = p.systemTexts(p.head, p.parts)
	} else if v := s.open(); !p.emptyText(v) {
		p.head = p.unsigned(append(p.head, field{tag: tagSystem}, field{tagText, v}))
	}
	m.head, m.headCut = true, s.cut
}

// systemTexts appends the texts among parts to to as one message of the system; nothing if there is none.
func (p *Parser) systemTexts(to, parts []field) []field {
	tag := byte(tagText)
	for _, f := range parts {
		if f.tag != tagText || p.emptyText(f.at) || p.attributes(f.at) {
			continue
		}
		if tag == tagText {
			p.append(&to, tagSystem, span{})
		}
		p.append(&to, tag, f.at)
		tag = tagJoin
	}
	return to
}

// attributes reports whether a text begins with an attribution, or is cut where it may.
func (p *Parser) attributes(v span) bool {
	raw := p.scan.of(v)
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	n, _ := decode(p.name[:len(attribution)+maxStep], raw[1:len(raw)-1])
	text := p.name[:n]
	return bytes.HasPrefix(text, []byte(attribution)) || v == p.scan.begun && strings.HasPrefix(attribution, string(text))
}

// unsigned is what a system message keeps of its texts: of one with an attribution what stands behind its first line, as in
// vLLM's renderers/chat_utils.py.
func (p *Parser) unsigned(parts []field) []field {
	kept := parts[:0]
	for _, f := range parts {
		if f.tag == tagText && p.attributes(f.at) {
			if f.tag = tagRest; len(p.rest(f.at)) == 0 {
				continue
			}
		}
		kept = append(kept, f)
	}
	return kept
}

// rest is what stands behind the first line of a text, as spelled.
func (p *Parser) rest(v span) []byte {
	raw := p.scan.of(v)
	raw = raw[1 : len(raw)-1]
	for i := bytes.IndexByte(raw, '\\'); i >= 0 && i+1 < len(raw); {
		if raw[i+1] == 'n' {
			return raw[i+2:]
		}
		if unit(raw[i:]) == '\n' {
			return raw[i+6:]
		}
		next := bytes.IndexByte(raw[i+2:], '\\')
		if next < 0 {
			break
		}
		i += 2 + next
	}
	return nil
}

// turn scans one message and records it, the results of tools in it before the rest.
func (p *Parser) turn() {
	s := &p.scan
	start, changes := len(p.fields), len(p.changes)
	p.parts, p.calls, p.thoughts = p.parts[:0], p.calls[:0], p.thoughts[:0]
	var role, content span
	open := false // the blocks are cut: results of tools may come that stand before what came
	s.enter()
	for n := 0; s.more('}', n); n++ {
		switch string(p.key()) {
		case "role":
			role = s.value()
		case "content":
			p.fields, p.changes = p.fields[:start], p.changes[:changes]
			p.parts, p.calls, p.thoughts = p.parts[:0], p.calls[:0], p.thoughts[:0]
			if content = (span{}); s.peek() == '[' || s.peek() == '{' {
				p.blocks()
				open = s.cut
			} else {
				content = s.open()
			}
		default:
			s.value()
		}
	}
	switch {
	case s.cut && role.end == 0:
		p.fields = p.fields[:start]
		return
	case open:
		return
	case p.is(role, "system"):
		p.add(&p.parts, tagText, content)
		p.fields = p.systemTexts(p.fields, p.parts)
		return
	case content.end == 0 && len(p.parts) == 0 && p.is(role, "user"):
		return // nothing but results of tools, which are recorded already
	}
	p.append(&p.fields, tagMessage, role)
	p.add(&p.parts, tagText, content)
	p.joinContent()
	if !s.cut {
		p.join(p.thoughts)
		p.join(p.calls)
	}
}
