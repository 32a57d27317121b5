package prompt

import (
	"fmt"
	"slices"
	"strings"
)

// ToolsPosition is where a model's chat template puts the tools: behind what two prompts with other tools have
// in common, and before what they do not. A position that is not the template's costs matches where tools
// differ, and promises some that are none.
type ToolsPosition string

// The positions. Which chat template has which is for its reader to see; of those in use:
//
//	first             before the system text: Hermes 2 Pro, as vLLM's examples/tool_chat_template_hermes.jinja
//	after_system      behind the leading system and developer messages: Qwen 2.5 (its tokenizer_config.json, inside
//	                  the system turn), Llama 3.1 and 3.2 (theirs, and vLLM's tool_chat_template_llama3.1_json.jinja,
//	                  in the first user turn)
//	before_last_user  before the last message of a user: Mistral to 7B v0.3, as vLLM's
//	                  tool_chat_template_mistral.jinja; where no user speaks, behind all messages
const (
	ToolsFirst          ToolsPosition = "first"
	ToolsAfterSystem    ToolsPosition = "after_system"
	ToolsBeforeLastUser ToolsPosition = "before_last_user"
)

var toolsPositions = []string{string(ToolsFirst), string(ToolsAfterSystem), string(ToolsBeforeLastUser)}

// Validate returns an error that lists the positions if t is none of them.
func (t ToolsPosition) Validate() error {
	if slices.Contains(toolsPositions, string(t)) {
		return nil
	}
	return fmt.Errorf("%q is none of %s", string(t), strings.Join(toolsPositions, ", "))
}

// toolKeys are what vLLM renders of a tool, in the order of its model, and before them what a chat puts it in.
var toolKeys = [...]string{"function", "type", "name", "description", "parameters", "input_schema", "strict", "defer_loading"}

const (
	toolFunction = iota
	toolType
	toolName
	toolDescription
	toolParameters
	toolSchema
	toolStrict
	toolDefer
)

// toolList records the tools. What is no array counts as it stands.
func (p *Parser) toolList() {
	s := &p.scan
	p.tools = p.tools[:0]
	if s.peek() != '[' {
		if v := s.value(); !p.emptyList(v) {
			p.append(&p.tools, tagTools, v)
		}
		return
	}
	s.enter()
	for n := 0; s.more(']', n); n++ {
		if s.peek() == '{' {
			p.tool()
		} else {
			p.append(&p.tools, tagTools, s.value())
		}
	}
}

// tool records what a model sees of a function that it may call, however the API has it; another tool as it stands.
func (p *Parser) tool() {
	s := &p.scan
	start := s.i
	var v [len(toolKeys)]span
	s.object(toolKeys[:], v[:], 0)
	end := s.i
	switch {
	case p.starts(v[toolFunction], '{'):
		deferred := v[toolDefer]
		s.i, v = v[toolFunction].start, [len(toolKeys)]span{}
		s.object(toolKeys[:], v[:], 0)
		s.i = end
		if p.absent(v[toolDefer]) {
			v[toolDefer] = deferred
		}
	case v[toolParameters].end == 0 && v[toolSchema].end == 0 && !p.is(v[toolType], "function"):
		p.append(&p.tools, tagTools, span{start, end})
		return
	}
	p.append(&p.tools, tagTools, v[toolName])
	p.add(&p.tools, tagText, v[toolDescription])
	if v[toolParameters].end == 0 {
		v[toolParameters] = v[toolSchema]
	}
	p.add(&p.tools, tagArguments, v[toolParameters])
	p.add(&p.tools, tagStrict, v[toolStrict])
	p.add(&p.tools, tagDefer, v[toolDefer])
}

// before is how many of the recorded fields stand before the tools.
func (p *Parser) before(at ToolsPosition) int {
	last := len(p.fields)
	for i, f := range p.fields {
		switch {
		case at == ToolsBeforeLastUser:
			if f.tag == tagUser || f.tag == tagMessage && p.is(f.at, "user") {
				last = i
			}
		case f.tag == tagUser, f.tag == tagAssistant, f.tag == tagTool,
			f.tag == tagMessage && !p.is(f.at, "system") && !p.is(f.at, "developer"):
			return i
		}
	}
	return last
}

// is reports whether a value is the given string.
func (p *Parser) is(v span, want string) bool {
	raw := p.scan.of(v)
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	if raw = raw[1 : len(raw)-1]; len(raw) == len(want) {
		return string(raw) == want
	}
	n, used := decode(p.name[:keyBytes], raw)
	return used == len(raw) && string(p.name[:n]) == want
}
