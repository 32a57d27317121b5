package prompt

import (
	"encoding/binary"
)

// What a body says of how its prompt is rendered takes part in the chain where chat templates show it: a chat's
// documents and chat_template, whether special tokens are added, and the effort of reasoning before all else,
// chat_template_kwargs with the tools. The effort is a chat's reasoning_effort, reasoning.effort of a Responses body, and
// output_config.effort of an Anthropic body, or that its thinking is disabled (vLLM's entrypoints). In some templates
// the effort and the kwargs change only the last line: then prompts that differ there share more than their chains say.
// mm_processor_kwargs and media_io_kwargs are part of each medium. tool_choice and response_format are left out, as hardly
// any template shows them; with vLLM's --exclude-tools-when-tool-choice-none the tools go by the former, and weir then
// promises hits that are none.
//
// Of all but documents a hash takes part, whatever the order of their members.

// option returns where to note the member of that name, if it tells how to render; nil for any other.
func (m *members) option(key []byte) *span {
	switch string(key) {
	case "documents":
		return &m.documents
	case "chat_template":
		return &m.chatTemplate
	case "chat_template_kwargs":
		return &m.templateKwargs
	case "add_special_tokens":
		return &m.special
	case "truncate_prompt_tokens":
		return &m.truncate
	case "mm_processor_kwargs":
		return &m.processorKwargs
	case "media_io_kwargs":
		return &m.ioKwargs
	}
	return nil
}

// length ends a prompt and returns its tokens. One that truncate_prompt_tokens cuts has no chain: as a rule its end is kept.
func (p *Parser) length() int {
	n := p.enc.tokens()
	if p.longest > 0 && n > p.longest {
		n = p.longest
		p.truncated = p.truncated || p.enc.to == toChain
	}
	return min(n, MaxTextTokens)
}

var (
	effortKeys   = []string{"effort"}
	thinkingKeys = []string{"type"}
)

// effort scans the member that tells the effort of reasoning in the API at hand, or one that is not known.
func (p *Parser) effort(m *members, key []byte) {
	switch {
	case p.api == APIChat && string(key) == "reasoning_effort":
		m.effort = p.scan.value()
	case p.api == APIResponses && string(key) == "reasoning", p.api.anthropic() && string(key) == "output_config":
		m.effort = p.within(effortKeys)
	case p.api.anthropic() && string(key) == "thinking":
		if m.effortOff = p.within(thinkingKeys); !p.is(m.effortOff, "disabled") {
			m.effortOff = span{}
		}
	default:
		p.scan.value()
	}
}

// within scans a value and returns that member of it.
func (p *Parser) within(name []string) span {
	var v [1]span
	if p.scan.peek() != '{' {
		p.scan.value()
		return span{}
	}
	p.scan.object(name, v[:], 0)
	return v[0]
}

// options writes what stands before all else.
func (p *Parser) options(m *members) {
	if p.api == APIChat {
		if !p.emptyList(m.documents) {
			p.enc.tag(tagOption)
			p.enc.short("documents")
			p.enc.json(p.scan.of(m.documents))
		}
		p.optionHash("chat_template", m.chatTemplate)
		if string(p.scan.of(m.special)) == "true" {
			p.optionHash("add_special_tokens", m.special)
		}
	}
	effort := m.effort
	if m.effortOff.end > 0 {
		effort = m.effortOff
	}
	p.optionHash("effort", effort)
}

// optionHash writes the hash of an option, unless it says nothing.
func (p *Parser) optionHash(name string, v span) {
	if p.emptyList(v) || p.emptyText(v) {
		return
	}
	e := &p.enc
	e.tag(tagOption)
	e.short(name)
	h := e.hash(p.scan.of(v))
	e.room(8)
	binary.LittleEndian.PutUint64(e.buf[e.fill:], h)
	e.fill += 8
}

// mediaOptions is a hash of what is said of all media; 0 if nothing is.
func (p *Parser) mediaOptions(m *members) uint64 {
	sum := uint64(0)
	for i, v := range [...]span{m.processorKwargs, m.ioKwargs} {
		if !p.emptyList(v) {
			sum = fold(sum, fold(uint64(i), p.enc.hash(p.scan.of(v))))
		}
	}
	return sum
}
