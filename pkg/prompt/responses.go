package prompt

// A Responses body is read as vLLM makes a chat of it: instructions are its system message, an input that is a
// string a message of its user; of the items of a list, those with a role are messages of the chat. vLLM joins
// a reasoning, a text and the calls that follow one another to one message of the assistant; here each is one
// of its own, which a list that grows keeps as well.

// instructions records the instructions as the system message.
func (p *Parser) instructions(v span) {
	if p.head = p.head[:0]; !p.empty(v) {
		p.head = append(p.head, field{tag: tagSystem}, field{tagText, v})
	}
}

// empty reports whether a value is absent, null or the empty string.
func (p *Parser) empty(v span) bool {
	raw := p.scan.of(v)
	return len(raw) == 0 || string(raw) == "null" || string(raw) == `""`
}

// items scans an input; false if it is neither a string nor an array. An item that only names what the server keeps
// sets m.reference.
func (p *Parser) items(m *members) bool {
	s := &p.scan
	p.fields, p.broken, p.over, m.reference = p.fields[:0], false, len(p.tools) >= MaxParts, false
	switch s.peek() {
	case '"':
		p.append(&p.fields, tagUser, span{})
		p.append(&p.fields, tagText, s.value())
		return true
	case '[':
	default:
		s.value()
		return false
	}
	s.enter()
	for n := 0; s.more(']', n); n++ {
		if s.peek() != '{' {
			p.broken = true
			s.value()
			continue
		}
		p.inputItem(m)
	}
	return true
}

var itemKeys = [...]string{"type", "role", "call_id", "name", "arguments", "input", "output", "content", "summary"}

const (
	itemType = iota
	itemRole
	itemCallID
	itemName
	itemArguments
	itemInput
	itemOutput
	itemContent
	itemSummary
)

// inputItem scans one item, and then that of it which tells what it is.
func (p *Parser) inputItem(m *members) {
	s := &p.scan
	start := s.i
	var v [len(itemKeys)]span
	p.object(itemKeys[:], v[:], 0)
	end := s.i
	if end == len(s.b) { // failed, or cut
		return
	}
	kind, role, id := v[itemType], v[itemRole], v[itemCallID]
	switch {
	case p.is(kind, "function_call"):
		p.itemCall(v[itemName], id, v[itemArguments])
	case p.is(kind, "custom_tool_call"):
		p.itemCall(v[itemName], id, v[itemInput])
	case p.is(kind, "function_call_output"), p.is(kind, "custom_tool_call_output"):
		p.append(&p.fields, tagTool, span{})
		p.again(v[itemOutput], tagText)
		p.add(&p.fields, tagID, id)
	case p.is(kind, "reasoning"):
		p.append(&p.fields, tagAssistant, span{})
		content := v[itemContent]
		if p.blank(content) {
			content = v[itemSummary]
		}
		p.again(content, tagReasoning)
	case p.is(kind, "item_reference"):
		m.reference = true
	case role.end > 0:
		s.i = start
		p.message()
	default:
		p.append(&p.fields, tagAssistant, span{})
		p.append(&p.fields, tagMedia, span{start, end})
	}
	s.i = end
}

func (p *Parser) itemCall(name, id, arguments span) {
	p.append(&p.fields, tagAssistant, span{})
	p.append(&p.fields, tagCall, name)
	p.add(&p.fields, tagID, id)
	p.add(&p.fields, tagArguments, arguments)
}

// again scans content that was passed over, and records it; its texts with the given tag.
func (p *Parser) again(v span, text byte) {
	if v.end == 0 {
		return
	}
	p.scan.i = v.start
	p.add(&p.fields, text, p.content())
	for i := range p.parts {
		if p.parts[i].tag == tagText {
			p.parts[i].tag = text
		}
	}
	p.join(p.parts)
}
