package prompt

// restart forgets the messages recorded so far: the last that a body has count.
func (p *Parser) restart() {
	p.fields, p.changes, p.broken, p.over = p.fields[:0], p.changes[:0], false, false
}

// messages scans the messages; false if they are no array.
func (p *Parser) messages() bool {
	s := &p.scan
	p.restart()
	if s.peek() != '[' {
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
		if p.api == APIChat {
			p.message()
		} else {
			p.turn()
		}
	}
	return true
}

// chatMessage is where the members of a chat's message stand but for its parts and calls.
type chatMessage struct {
	role, content, tools, name, id, task, reasoning, reasoningContent span
}

// message scans one message and records its parts in canonical order, whatever order they arrive in.
func (p *Parser) message() {
	s := &p.scan
	p.parts, p.calls = p.parts[:0], p.calls[:0]
	var m chatMessage
	s.enter()
	for n := 0; s.more('}', n); n++ {
		switch string(p.key()) {
		case "role":
			m.role = s.value()
		case "content":
			m.content = p.content()
		case "tool_calls":
			p.calls = p.calls[:0]
			p.toolCalls()
		case "tool_call_id":
			m.id = s.value()
		case "name":
			m.name = s.value()
		case "tools":
			m.tools = s.value()
		case "task":
			m.task = s.value()
		case "reasoning":
			m.reasoning = s.value()
		case "reasoning_content":
			m.reasoningContent = s.value()
		default:
			s.value()
		}
	}
	if !s.cut || m.role.end > 0 {
		p.record(m)
	}
}

func (p *Parser) record(m chatMessage) {
	p.append(&p.fields, tagMessage, m.role)
	p.add(&p.parts, tagText, m.content)
	if p.is(m.role, "system") && (p.api == APIChat || m.content.end > 0) { // input_text stays as it is
		p.parts = p.unsigned(p.parts)
	}
	p.joinContent()
	if p.scan.cut { // of what else it has, some may be missing
		return
	}
	if p.is(m.role, "developer") && !p.emptyList(m.tools) {
		p.append(&p.fields, tagTools, m.tools)
	}
	p.add(&p.fields, tagName, m.name)
	p.add(&p.fields, tagID, m.id)
	p.add(&p.fields, tagTask, m.task)
	if p.absent(m.reasoning) {
		m.reasoning = m.reasoningContent
	}
	p.add(&p.fields, tagReasoning, m.reasoning)
	p.join(p.calls)
}

// toolCalls scans the calls that an assistant made.
func (p *Parser) toolCalls() {
	s := &p.scan
	if s.peek() != '[' {
		p.add(&p.calls, tagCall, s.value())
		return
	}
	s.enter()
	for n := 0; s.more(']', n); n++ {
		if s.peek() == '{' {
			p.toolCall()
		} else {
			p.append(&p.calls, tagCall, s.value())
		}
	}
}

func (p *Parser) toolCall() {
	s := &p.scan
	var id, name, arguments span
	s.enter()
	for n := 0; s.more('}', n); n++ {
		switch string(p.key()) {
		case "id":
			id = s.value()
		case "function":
			name, arguments = p.function()
		default:
			s.value()
		}
	}
	p.append(&p.calls, tagCall, name)
	p.add(&p.calls, tagID, id)
	p.add(&p.calls, tagArguments, arguments)
}

func (p *Parser) function() (name, arguments span) {
	s := &p.scan
	if s.peek() != '{' {
		return s.value(), span{}
	}
	s.enter()
	for n := 0; s.more('}', n); n++ {
		switch string(p.key()) {
		case "name":
			name = s.value()
		case "arguments":
			arguments = s.value()
		default:
			s.value()
		}
	}
	return name, arguments
}
