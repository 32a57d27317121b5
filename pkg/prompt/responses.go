package prompt

// A Responses body is read as vLLM makes a chat of it: instructions are its system message, an input that is a
// string a message of its user; of the items of a list, those with a role are messages of the chat. vLLM joins
// a reasoning, a text and the calls that follow one another to one message of the assistant; here each is one
// of its own, which a list that grows keeps as well.

// instructions records the instructions as the system message.
func (p *Parser) instructions(v span) {
	if p.head = p.head[:0]; !p.emptyText(v) {
		p.head = p.unsigned(append(p.head, field{tag: tagSystem}, field{tagText, v}))
	}
}

// items scans an input; false if it is neither a string nor an array. An item that only names what the server keeps
// sets m.reference.
func (p *Parser) items(m *members) bool {
	s := &p.scan
	p.restart()
	m.reference = false
	switch s.peek() {
	case '"':
		p.append(&p.fields, tagUser, span{})
		if v := s.value(); !p.emptyText(v) {
			p.append(&p.fields, tagText, v)
		}
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

var itemKeys = [...]string{"type", "role", "call_id", "name", "arguments", "input", "output", "content", "summary", "namespace"}

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
	itemNamespace
)

// inputItem scans one item, and then that of it which tells what it is.
func (p *Parser) inputItem(m *members) {
	s := &p.scan
	start := s.i
	var v [len(itemKeys)]span
	p.scan.object(itemKeys[:], v[:], 0)
	end := s.i
	if end == len(s.b) { // failed, or cut
		return
	}
	kind, role, id := v[itemType], v[itemRole], v[itemCallID]
	switch {
	case p.is(kind, "function_call"):
		p.itemCall(v[itemName], id, v[itemArguments])
		p.add(&p.fields, tagName, v[itemNamespace])
	case p.is(kind, "custom_tool_call"): // its input is a text, which vLLM wraps
		p.itemCall(v[itemName], id, span{})
		p.add(&p.fields, tagText, v[itemInput])
	case p.is(kind, "function_call_output"), p.is(kind, "custom_tool_call_output"):
		p.append(&p.fields, tagTool, span{})
		p.again(v[itemOutput], tagText)
		p.add(&p.fields, tagID, id)
	case p.is(kind, "reasoning"):
		p.append(&p.fields, tagAssistant, span{})
		content := v[itemContent]
		if p.emptyList(content) {
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
		p.append(&p.fields, tagFile, span{start, end})
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
	if all := p.content(); all.end > 0 {
		p.add(&p.parts, tagText, all)
	}
	n := len(p.fields)
	p.joinContent()
	for i := range p.fields[n:] {
		if f := &p.fields[n+i]; f.tag == tagText {
			f.tag = text
		}
	}
}
