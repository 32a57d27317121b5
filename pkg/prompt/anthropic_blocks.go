package prompt

// blocks scans content blocks, or the only one: results of tools into fields, all else into parts, thoughts and calls.
func (p *Parser) blocks() {
	s := &p.scan
	p.parts = p.parts[:0]
	if s.peek() == '{' {
		p.block()
		return
	}
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
	p.scan.object(blockKeys[:], v[:], openKeys)
	end := s.i
	if s.reason != ReasonNone {
		return
	}
	kind := v[blockType]
	switch {
	case p.is(kind, "text"):
		if !p.emptyText(v[blockText]) {
			p.append(&p.parts, tagText, v[blockText])
		}
	case p.is(kind, "tool_result"):
		p.result(v[blockCall], v[blockContent])
	case end == len(s.b): // cut
	case p.is(kind, "image"):
		p.add(&p.parts, tagImage, v[blockSource])
	case p.is(kind, "document"):
		p.add(&p.parts, tagFile, v[blockSource])
	case p.is(kind, "thinking"):
		p.think(v[blockThinking])
	case p.is(kind, "tool_use"):
		p.append(&p.calls, tagCall, v[blockName])
		p.add(&p.calls, tagID, v[blockID])
		if !p.emptyList(v[blockInput]) {
			p.append(&p.calls, tagArguments, v[blockInput])
		}
	case p.is(kind, "redacted_thinking"), p.is(kind, "tool_reference"):
	case p.is(kind, "tool_addition"), p.is(kind, "tool_removal"):
		p.append(&p.changes, tagTools, span{start, end})
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
	p.images, p.references = p.images[:0], p.references[:0]
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
	if len(p.references) > 0 {
		p.append(&p.fields, tagTool, span{})
		p.join(p.references)
		p.add(&p.fields, tagID, call)
	}
}

var resultKeys = [...]string{"type", "text", "source", "tool_name", "name"}

// resultBlocks scans what a tool answered: one text into fields, images, and references to tools.
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
		p.scan.object(resultKeys[:], v[:], 0)
		switch kind := v[0]; {
		case p.is(kind, "text"):
			p.append(&p.fields, tag, v[1])
			tag = tagLine
		case p.is(kind, "image"):
			p.add(&p.images, tagImage, v[2])
		case p.is(kind, "tool_reference"):
			if p.emptyText(v[3]) {
				v[3] = v[4]
			}
			p.add(&p.references, tagReference, v[3])
		}
	}
	if tag == tagText {
		p.append(&p.fields, tagText, span{})
	}
}
