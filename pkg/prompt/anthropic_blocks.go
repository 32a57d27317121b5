package prompt

// blocks scans content blocks: results of tools into fields, all else into parts, thoughts and calls.
func (p *Parser) blocks() {
	s := &p.scan
	p.parts = p.parts[:0]
	s.enter()
	for n := 0; s.more(']', n); n++ {
		if s.peek() == '{' {
			p.block()
		} else {
			p.add(&p.parts, tagText, s.open())
		}
	}
}

// The members of a block, those first that count as far as they came.
var blockKeys = [...]string{"text", "content", "type", "thinking", "source", "id", "name", "input", "tool_use_id"}

const (
	blockText = iota
	blockContent
	blockType
	blockThinking
	blockSource
	blockID
	blockName
	blockInput
	blockCall

	openKeys = 2 // so many of them count as far as they came
)

// block scans one block.
func (p *Parser) block() {
	s := &p.scan
	start := s.i
	var v [len(blockKeys)]span
	p.object(blockKeys[:], v[:], openKeys)
	end := s.i
	if s.reason != ReasonNone {
		return
	}
	kind := v[blockType]
	switch {
	case p.is(kind, "text"):
		if !p.empty(v[blockText]) {
			p.append(&p.parts, tagText, v[blockText])
		}
	case p.is(kind, "tool_result"):
		p.result(v[blockCall], v[blockContent])
	case end == len(s.b): // cut
	case p.is(kind, "image"), p.is(kind, "document"):
		p.add(&p.parts, tagMedia, v[blockSource])
	case p.is(kind, "thinking"):
		p.think(v[blockThinking])
	case p.is(kind, "tool_use"):
		p.append(&p.calls, tagCall, v[blockName])
		p.add(&p.calls, tagID, v[blockID])
		if !p.blank(v[blockInput]) {
			p.append(&p.calls, tagArguments, v[blockInput])
		}
	case p.is(kind, "redacted_thinking"), p.is(kind, "tool_reference"), p.is(kind, "tool_addition"), p.is(kind, "tool_removal"):
	default:
		s.i = start
		p.part()
	}
	s.i = end
}

// think records a thinking block: those of a message are one reasoning.
func (p *Parser) think(v span) {
	tag := byte(tagReasoning)
	if len(p.thoughts) > 0 {
		tag = tagJoin
	}
	p.add(&p.thoughts, tag, v)
}

// result records what a tool answered as messages of their own.
func (p *Parser) result(call, content span) {
	s := &p.scan
	p.images = p.images[:0]
	p.append(&p.fields, tagTool, span{})
	if raw := p.scan.of(content); len(raw) == 0 || raw[0] != '[' {
		p.append(&p.fields, tagText, content)
	} else {
		s.i = content.start
		p.resultBlocks()
	}
	if s.cut {
		return
	}
	p.add(&p.fields, tagID, call)
	if len(p.images) > 0 {
		p.append(&p.fields, tagUser, span{})
		p.join(p.images)
	}
}

var resultKeys = [...]string{"type", "text", "source"}

// resultBlocks scans what a tool answered: one text into fields, and images.
func (p *Parser) resultBlocks() {
	s := &p.scan
	tag := byte(tagText)
	s.enter()
	for n := 0; s.more(']', n); n++ {
		if s.peek() != '{' {
			s.value()
			continue
		}
		var v [len(resultKeys)]span
		p.object(resultKeys[:], v[:], 0)
		switch kind := v[0]; {
		case p.is(kind, "text"):
			p.append(&p.fields, tag, v[1])
			tag = tagLine
		case p.is(kind, "image"), p.is(kind, "document"):
			p.add(&p.images, tagMedia, v[2])
		}
	}
	if tag == tagText {
		p.append(&p.fields, tagText, span{})
	}
}

// toolKeys are what a model sees of a tool, and their tags.
var (
	toolKeys = [...]string{"name", "description", "input_schema", "strict", "defer_loading"}
	toolTags = [...]byte{tagTools, tagText, tagArguments, tagStrict, tagDefer}
)

// toolList records of each tool what the model sees.
func (p *Parser) toolList() {
	s := &p.scan
	if s.peek() != '[' {
		p.rawTools()
		return
	}
	p.tools = p.tools[:0]
	s.enter()
	for n := 0; s.more(']', n); n++ {
		if s.peek() != '{' {
			p.append(&p.tools, tagTools, s.value())
			continue
		}
		var v [len(toolKeys)]span
		p.object(toolKeys[:], v[:], 0)
		p.append(&p.tools, tagTools, v[0])
		for i, at := range v[1:] {
			p.add(&p.tools, toolTags[1+i], at)
		}
	}
}
