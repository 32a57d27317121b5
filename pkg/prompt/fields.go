package prompt

// field is one part of the prompt: a tag and the JSON value that follows it in the canonical stream.
type field struct {
	tag byte
	at  span
}

// add records a part; null and absent values are none.
func (p *Parser) add(to *[]field, tag byte, v span) {
	if v.end > 0 && string(p.scan.of(v)) != "null" {
		p.append(to, tag, v)
	}
}

// append records a part whatever it is; one beyond MaxParts only sets over.
func (p *Parser) append(to *[]field, tag byte, v span) {
	if len(*to) >= MaxParts {
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

// object scans an object and puts where the members of these names stand into v; of the first open of them that are
// cut, their beginning.
func (p *Parser) object(names []string, v []span, open int) {
	s := &p.scan
	s.enter()
	for n := 0; s.more('}', n); n++ {
		key := p.key()
		i := len(names) - 1
		for i >= 0 && string(key) != names[i] {
			i--
		}
		switch {
		case i < 0:
			s.value()
		case i < open:
			v[i] = s.open()
		default:
			v[i] = s.value()
		}
	}
}

// conversation writes the recorded parts in canonical order.
func (p *Parser) conversation(dst *Prompt, m *members, at ToolsPosition) Reason {
	if p.broken || p.over {
		return ReasonShape
	}
	p.begin(false)
	p.order(m, at)
	dst.Tokens = min(max(1, p.enc.tokens()), MaxTextTokens)
	return ReasonNone
}

// order writes system, tools and the other messages; of a body that is cut, what nothing unknown stands before.
func (p *Parser) order(m *members, at ToolsPosition) {
	cut := p.scan.cut
	n := p.before(at)
	switch {
	case cut && p.api == APIResponses: // what only the server knows may stand before all of it
	case at == ToolsFirst:
		if cut && !m.tools {
			return
		}
		p.put(p.tools)
		if p.putHead(m) {
			p.put(p.fields)
		}
	case p.putHead(m):
		p.put(p.fields[:n])
		if cut && (!m.tools || at == ToolsBeforeLastUser || n == len(p.fields) && !m.whole) {
			return
		}
		p.put(p.tools)
		p.put(p.fields[n:])
	}
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
		case tagMedia:
			e.tag(tagMedia)
			e.medium(raw)
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
		default:
			e.tag(f.tag)
			e.value(raw)
		}
	}
}
