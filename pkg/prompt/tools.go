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

// rawTools records the tools as they stand, where the server takes them so. No tools are none.
func (p *Parser) rawTools() {
	p.tools = p.tools[:0]
	if v := p.scan.value(); !p.blank(v) {
		p.append(&p.tools, tagTools, v)
	}
}

// blank reports whether a value is absent, null, or an object or array of nothing.
func (p *Parser) blank(v span) bool {
	raw := p.scan.of(v)
	if len(raw) == 0 || string(raw) == "null" {
		return true
	}
	s := scanner{b: raw, i: 1}
	c := s.peek()
	return (raw[0] == '[' || raw[0] == '{') && s.i == len(raw)-1 && class[c] == closer
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
