package prompt

// members is where a body's members stand.
type members struct {
	model, salt, cacheKey, instructions       span
	messages, prompt, input                   span // passed over, as they are not the API's own or need no scan
	maxTokens, maxCompletionTokens, maxOutput span
	n, bestOf, stream                         span

	documents, chatTemplate, templateKwargs span // how to render the prompt (options.go)
	effort, effortOff                       span
	processorKwargs, ioKwargs               span
	special, truncate                       span

	own     bool // the API's own member can be read; its parts are in Parser.fields
	whole   bool // all of them
	head    bool // Parser.head is known
	headCut bool // and is cut
	tools   bool // Parser.tools are known
	cutAt   int  // where the prompt of text begins that is cut; 0: none is

	// What a Responses body may have that only the server knows in full.
	previous, thread, template, reference bool
}

// body scans the outermost object.
func (p *Parser) body(m *members) Reason {
	s := &p.scan
	p.head, p.tools = p.head[:0], p.tools[:0]
	p.restart()
	if s.peek() != '{' {
		return ReasonNotJSON
	}
	s.enter()
	for n := 0; s.more('}', n); n++ {
		key := p.key()
		if to := m.setting(key); to != nil {
			*to = s.value()
		} else {
			p.member(m, key)
		}
	}
	if s.peek() != 0 || s.i < len(s.b) {
		s.fail(ReasonNotJSON)
	}
	return s.reason
}

// setting returns where to note the member of that name, if it is one plain value; nil for any other.
func (m *members) setting(key []byte) *span {
	switch string(key) {
	case "model":
		return &m.model
	case "cache_salt":
		return &m.salt
	case "prompt_cache_key":
		return &m.cacheKey
	case "stream":
		return &m.stream
	case "n":
		return &m.n
	case "best_of":
		return &m.bestOf
	case "max_tokens":
		return &m.maxTokens
	case "max_completion_tokens":
		return &m.maxCompletionTokens
	case "max_output_tokens":
		return &m.maxOutput
	case "instructions":
		return &m.instructions
	}
	return m.option(key)
}

// member scans a member that is part of the prompt, or none that is known.
func (p *Parser) member(m *members, key []byte) {
	s := &p.scan
	switch string(key) {
	case "messages":
		if p.api == APIChat || p.api.anthropic() {
			m.own = p.messages()
			m.whole = !s.cut
		} else {
			m.messages = s.value()
		}
	case "prompt":
		m.prompt = p.list(m, APICompletions)
		m.template = p.starts(m.prompt, '{')
	case "input":
		if p.api == APIResponses {
			m.own = p.items(m)
		} else {
			m.input = p.list(m, APIEmbeddings)
		}
	case "system":
		if p.api.anthropic() {
			p.system(m)
		} else {
			s.value()
		}
	case "tools":
		p.toolList()
		m.tools = !s.cut
	case "previous_response_id":
		m.previous = !p.emptyText(s.value())
	case "conversation":
		m.thread = !p.emptyText(s.value())
	default:
		p.effort(m, key)
	}
}

// list passes over a prompt of text, and notes where it begins if it is cut and the API's own.
func (p *Parser) list(m *members, own API) span {
	p.scan.peek()
	start := p.scan.i
	v := p.scan.value()
	if m.cutAt = 0; p.scan.cut && p.api == own {
		m.cutAt = start
	}
	return v
}

// prompt reads the prompt. One that begins with what the server keeps is counted as far as the body has it.
func (p *Parser) prompt(dst *Prompt, m *members, at ToolsPosition) Reason {
	stored := p.api == APIResponses && (m.previous || m.thread || m.template)
	r := p.found(dst, m, at)
	if stored || m.reference {
		return ReasonStored
	}
	return r
}

// found reads the member that is the API's own or, if the body does not have it, another that is a prompt. Of a
// body that is cut, another may still come before it.
func (p *Parser) found(dst *Prompt, m *members, at ToolsPosition) Reason {
	own := span{}
	switch p.api {
	case APICompletions:
		own = m.prompt
	case APIEmbeddings:
		own = m.input
	case APIResponses:
		p.instructions(m.instructions)
	}
	switch {
	case m.own:
		return p.conversation(dst, m, at)
	case p.textual(own):
		return p.completion(dst, own)
	case p.scan.cut:
		if m.cutAt > 0 {
			p.beginning(m.cutAt)
		}
		return ReasonNone
	}
	return p.other(dst, m, at)
}

// other reads a prompt by what the body has.
func (p *Parser) other(dst *Prompt, m *members, at ToolsPosition) Reason {
	switch {
	case p.starts(m.messages, '['):
		return p.reread(dst, m, APIChat, m.messages, at)
	case p.textual(m.prompt):
		return p.completion(dst, m.prompt)
	case p.api == APIEmbeddings && p.starts(m.input, '['):
		return p.reread(dst, m, APIChat, m.input, at)
	case p.api != APIEmbeddings && (p.starts(m.input, '[') || p.starts(m.input, '"')):
		return p.reread(dst, m, APIResponses, m.input, at)
	}
	return ReasonShape
}

// reread scans v, which was passed over, as that API has it.
func (p *Parser) reread(dst *Prompt, m *members, as API, v span, at ToolsPosition) Reason {
	p.api, p.scan.i, p.scan.depth = as, v.start, 1
	if as == APIChat {
		p.messages()
	} else {
		p.instructions(m.instructions)
		p.items(m)
	}
	if p.scan.reason != ReasonNone {
		return p.scan.reason
	}
	return p.conversation(dst, m, at)
}

// textual reports whether a value may be a prompt of text or token ids, or a list of them.
func (p *Parser) textual(v span) bool {
	if !p.starts(v, '[') {
		return p.starts(v, '"')
	}
	s := scanner{b: p.scan.of(v), i: 1}
	return s.peek() != '{'
}

// starts reports whether a value begins with c.
func (p *Parser) starts(v span, c byte) bool { return v.end > 0 && p.scan.b[v.start] == c }
