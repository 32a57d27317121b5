package prompt

import "bytes"

// An Anthropic body is read as vLLM makes a chat of it (entrypoints/anthropic/serving.py), so that what vLLM
// drops or joins breaks no prefix that its cache shares:
//
//   - the text blocks of system are one text; one with an attribution header, which holds a hash of the
//     request, is dropped, and so are empty texts and redacted_thinking;
//   - results of tools are messages of their own before the rest of their message, their texts joined by a line
//     break, their images in a message of the user behind them;
//   - of a tool only what the model sees counts, which cache_control is not.
//
// A call's arguments are written token by token where a chat has them as a string, so that a conversation here and
// the same one as a chat need not have equal chains.

// attribution begins a text that names the client and the request.
const attribution = "x-anthropic-billing-header"

// system records the system prompt.
func (p *Parser) system(m *members) {
	s := &p.scan
	p.head = p.head[:0]
	if s.peek() == '[' {
		n := len(p.fields)
		p.blocks()
		p.fields = p.fields[:n] // results of tools are no part of a system prompt
		p.head = p.systemTexts(p.head, p.parts)
	} else if v := s.open(); !p.empty(v) {
		p.head = append(p.head, field{tag: tagSystem}, field{tagText, v})
	}
	m.head, m.headCut = true, s.cut
}

// systemTexts appends the texts among parts to to as one message of the system; nothing if there is none.
func (p *Parser) systemTexts(to, parts []field) []field {
	tag := byte(tagText)
	for _, f := range parts {
		if f.tag != tagText || p.empty(f.at) || p.attributes(f.at) {
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

// attributes reports whether a text begins with an attribution.
func (p *Parser) attributes(v span) bool {
	raw := p.scan.of(v)
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	n, _ := decode(p.name[:len(attribution)+maxStep], raw[1:len(raw)-1])
	return bytes.HasPrefix(p.name[:n], []byte(attribution))
}

// turn scans one message and records it, the results of tools in it before the rest.
func (p *Parser) turn() {
	s := &p.scan
	start := len(p.fields)
	p.parts, p.calls, p.thoughts = p.parts[:0], p.calls[:0], p.thoughts[:0]
	var role, content span
	open := false // the blocks are cut: results of tools may come that stand before what came
	s.enter()
	for n := 0; s.more('}', n); n++ {
		switch string(p.key()) {
		case "role":
			role = s.value()
		case "content":
			p.fields = p.fields[:start]
			p.parts, p.calls, p.thoughts = p.parts[:0], p.calls[:0], p.thoughts[:0]
			if content = (span{}); s.peek() == '[' {
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
		if !p.empty(content) {
			p.add(&p.parts, tagText, content)
		}
		p.fields = p.systemTexts(p.fields, p.parts)
		return
	case content.end == 0 && len(p.parts) == 0 && p.is(role, "user"):
		return // nothing but results of tools, which are recorded already
	}
	p.append(&p.fields, tagMessage, role)
	p.add(&p.fields, tagText, content)
	p.join(p.parts)
	if !s.cut {
		p.join(p.thoughts)
		p.join(p.calls)
	}
}
