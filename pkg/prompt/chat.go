package prompt

// messages scans the messages; false if they are no array.
func (p *Parser) messages() bool {
	s := &p.scan
	p.fields, p.broken, p.over = p.fields[:0], false, len(p.tools) >= MaxParts || len(p.head) >= MaxParts
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

// message scans one message and records its parts in canonical order, whatever order they arrive in.
func (p *Parser) message() {
	s := &p.scan
	p.parts, p.calls = p.parts[:0], p.calls[:0]
	var role, name, id, reasoning, reasoningContent, content span
	s.enter()
	for n := 0; s.more('}', n); n++ {
		switch string(p.key()) {
		case "role":
			role = s.value()
		case "content":
			content = p.content()
		case "tool_calls":
			p.calls = p.calls[:0]
			p.toolCalls()
		case "tool_call_id":
			id = s.value()
		case "name":
			name = s.value()
		case "reasoning":
			reasoning = s.value()
		case "reasoning_content":
			reasoningContent = s.value()
		default:
			s.value()
		}
	}
	if s.cut && role.end == 0 {
		return
	}
	p.append(&p.fields, tagMessage, role)
	p.add(&p.fields, tagText, content)
	p.join(p.parts)
	if s.cut { // of what else it has, some may be missing
		return
	}
	p.add(&p.fields, tagName, name)
	p.add(&p.fields, tagID, id)
	p.add(&p.fields, tagReasoning, reasoning)
	p.add(&p.fields, tagReasoning, reasoningContent)
	p.join(p.calls)
}

// content scans a message's content: an array into parts, anything else is returned as it stands.
func (p *Parser) content() span {
	s := &p.scan
	p.parts = p.parts[:0]
	if s.peek() != '[' {
		return s.open()
	}
	s.enter()
	for n := 0; s.more(']', n); n++ {
		if s.peek() == '{' {
			p.part()
		} else {
			p.add(&p.parts, tagText, s.open())
		}
	}
	return span{}
}

// partKeys are the members of a content part that reach the model, in canonical order.
var partKeys = [...]struct {
	name string
	tag  byte
}{
	{"text", tagText}, {"refusal", tagText}, {"thinking", tagText},
	{"image_url", tagMedia}, {"image_embeds", tagMedia}, {"video_url", tagMedia},
	{"audio_url", tagMedia}, {"audio_embeds", tagMedia}, {"input_audio", tagMedia}, {"file", tagMedia},
	{"file_data", tagMedia}, {"file_id", tagMedia}, {"file_url", tagMedia}, {"source", tagMedia},
	{"uuid", tagUUID},
}

// part scans one part of a content array. The member that holds the payload tells its kind, so that its type
// need not be known beforehand. A part with none of the known members is one medium: it may be large, and is
// no text that could be counted.
func (p *Parser) part() {
	s := &p.scan
	start := s.i
	var values [len(partKeys)]span
	known := false
	s.enter()
	for n := 0; s.more('}', n); n++ {
		i := partKey(p.key())
		v := s.open()
		if i >= 0 {
			values[i], known = v, true
		}
	}
	if s.cut { // the text stands before what else it has
		p.add(&p.parts, tagText, values[0])
		return
	}
	if !known {
		p.add(&p.parts, tagMedia, span{start, s.i})
		return
	}
	for i, v := range values {
		p.add(&p.parts, partKeys[i].tag, v)
	}
}

func partKey(key []byte) int {
	for i := range partKeys {
		if string(key) == partKeys[i].name {
			return i
		}
	}
	return -1
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
