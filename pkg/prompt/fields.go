package prompt

// field is one part of the prompt: a tag and the JSON value that follows it in the canonical stream.
type field struct {
	tag byte
	at  span
}

// add records a part; null and absent values are none.
func (p *Parser) add(to *[]field, tag byte, v span) {
	if !p.absent(v) {
		p.append(to, tag, v)
	}
}

// absent reports whether a value is not there, or null.
func (p *Parser) absent(v span) bool { return v.end == 0 || string(p.scan.of(v)) == "null" }

// emptyText reports whether a value is absent or the empty string.
func (p *Parser) emptyText(v span) bool { return p.absent(v) || string(p.scan.of(v)) == `""` }

// emptyList reports whether a value is absent, or an object or array of nothing.
func (p *Parser) emptyList(v span) bool {
	if p.absent(v) {
		return true
	}
	raw := p.scan.of(v)
	s := scanner{b: raw, i: 1}
	c := s.peek()
	return (raw[0] == '[' || raw[0] == '{') && s.i == len(raw)-1 && class[c] == closer
}

// append records a part whatever it is; one beyond MaxParts only sets over.
func (p *Parser) append(to *[]field, tag byte, v span) {
	if full(*to) {
		p.over = true
		return
	}
	*to = append(*to, field{tag, v})
}

// join is append of several to the prompt's.
func (p *Parser) join(fields []field) {
	if len(p.fields)+len(fields) > MaxParts {
		p.over = true
		return
	}
	p.fields = append(p.fields, fields...)
}

func full(fields []field) bool { return len(fields) >= MaxParts }

// conversation writes the recorded parts in canonical order.
func (p *Parser) conversation(dst *Prompt, m *members, at ToolsPosition) Reason {
	if p.broken || p.over || full(p.head) || full(p.tools) { // messages that come behind system or tools reset over
		return ReasonShape
	}
	p.begin(false)
	p.enc.mediaOptions = p.mediaOptions(m)
	p.order(m, at)
	dst.Tokens = max(1, p.length())
	return ReasonNone
}

// order writes system, tools and the other messages; of a body that is cut, what nothing unknown stands before.
func (p *Parser) order(m *members, at ToolsPosition) {
	cut := p.scan.cut
	if cut && p.api == APIResponses { // what only the server knows may stand before all of it
		return
	}
	p.options(m)
	n := p.before(at)
	switch {
	case at == ToolsFirst:
		if cut && !m.tools {
			return
		}
		p.putTools(m)
		if p.putHead(m) {
			p.put(p.fields)
		}
	case p.putHead(m):
		p.put(p.fields[:n])
		if cut && (!m.tools || at == ToolsBeforeLastUser || n == len(p.fields) && !m.whole) {
			return
		}
		p.putTools(m)
		p.put(p.fields[n:])
	}
}

// putTools writes the tools, and what stands with them.
func (p *Parser) putTools(m *members) {
	p.put(p.tools)
	p.put(p.changes)
	p.optionHash("chat_template_kwargs", m.templateKwargs)
}

// putHead writes what stands before all messages, and reports whether that is all of it.
func (p *Parser) putHead(m *members) bool {
	if p.api == APIChat {
		return true
	}
	if p.scan.cut && !m.head {
		return false
	}
	p.put(p.head)
	return !m.headCut
}

func (p *Parser) put(fields []field) {
	e := &p.enc
	for _, f := range fields {
		switch raw := p.scan.of(f.at); f.tag {
		case tagImage, tagVideo, tagAudio, tagFile, tagEmbeds:
			e.medium(f.tag, e.contentHash(raw))
		case tagImage | byUUID, tagVideo | byUUID, tagAudio | byUUID, tagFile | byUUID:
			e.medium(f.tag, e.hash(raw))
		case tagTools:
			e.tag(tagTools)
			e.json(raw)
		case tagSystem, tagUser, tagAssistant, tagTool:
			e.tag(tagMessage)
			e.short(roleOf(f.tag))
		case tagLine:
			e.short("\n")
			e.value(raw)
		case tagJoin:
			e.value(raw)
		case tagRest:
			e.tag(tagText)
			e.text(p.rest(f.at))
		default:
			e.tag(f.tag)
			e.value(raw)
		}
	}
}
