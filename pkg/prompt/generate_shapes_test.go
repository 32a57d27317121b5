package prompt

import (
	"maps"
	"slices"
	"strings"
)

// of writes a conversation as the API has it. With an order, the named members stand in it, behind all others.
func (r render) of(api API, c conversation, order ...string) string {
	var m map[string]string
	switch api {
	case APIMessages, APICount:
		m = r.anthropicMembers(c)
	case APIResponses:
		m = r.responsesMembers(c)
	case APICompletions, APIEmbeddings:
		m = map[string]string{map[API]string{APICompletions: "prompt", APIEmbeddings: "input"}[api]: r.batch(c)}
	default:
		m = r.chatMembers(c)
	}
	r.options(api, c, m)
	return r.ordered(m, c, order)
}

// options adds what the body says of how its prompt is rendered.
func (r render) options(api API, c conversation, m map[string]string) {
	var kwargs []string
	for i, v := range c.kwargs {
		kwargs = append(kwargs, r.member(string(rune('a'+i)), r.list("{}", true, r.member("x", r.str(v)), r.member("y", "[1,{}]"))))
	}
	if len(kwargs) > 0 || r.IntN(3) == 0 {
		m["chat_template_kwargs"] = r.list("{}", true, kwargs...)
	}
	effort := ""
	if c.effort != "" {
		effort = r.list("{}", true, r.member("effort", r.str(c.effort)), r.member("x", []string{"", "1"}[r.IntN(2)]))
	}
	switch api {
	case APIMessages, APICount:
		m["output_config"], m["thinking"] = effort, []string{"", `{"type":"enabled","budget_tokens":5}`}[r.IntN(2)]
	case APIResponses:
		m["reasoning"] = effort
	case APIChat:
		if effort != "" {
			m["reasoning_effort"] = r.str(c.effort)
		}
		var documents []string
		for _, d := range c.documents {
			documents = append(documents, r.list("{}", false, r.member("title", `"t"`), r.member("text", r.str(d))))
		}
		if len(documents) > 0 || r.IntN(3) == 0 {
			m["documents"] = r.list("[]", false, documents...)
		}
	}
}

func (r render) ordered(m map[string]string, c conversation, order []string) string {
	m["model"] = r.str(c.model)
	if c.salt != "" || r.IntN(2) == 0 {
		m["cache_salt"] = r.str(c.salt)
	}
	m["temperature"], m["metadata"] = "0.5", `{"messages":["x"],"a":[{}]}`
	var all []string
	for _, k := range order {
		all = append(all, r.member(k, m[k]))
		delete(m, k)
	}
	var first []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		first = append(first, r.member(k, m[k]))
	}
	r.Shuffle(len(first), func(i, j int) { first[i], first[j] = first[j], first[i] })
	return r.space() + r.list("{}", false, append(first, all...)...) + r.space()
}

func (r render) chatMembers(c conversation) map[string]string {
	var turns []string
	for _, t := range c.turns {
		turns = append(turns, r.turn(t))
	}
	return map[string]string{"messages": r.list("[]", false, turns...), "tools": r.tools(c, func(t string) string {
		fn := r.list("{}", true, r.member("name", r.str(t)), r.member("strict", "true"), r.member("parameters", `{"type":"object"}`))
		return r.list("{}", true, r.member("type", r.str("function")), r.member("function", fn))
	})}
}

// tools is nothing, an empty list or null if there are none.
func (r render) tools(c conversation, one func(string) string) string {
	if len(c.tools) == 0 {
		return []string{"", "null", "[ ]"}[r.IntN(3)]
	}
	var all []string
	for _, t := range c.tools {
		all = append(all, one(t))
	}
	return r.list("[]", false, all...)
}

// texts spells a text that the server joins from its blocks by a separator, as a string or cut into blocks.
func (r render) texts(s, separator string, block func(string) string) string {
	if r.IntN(2) == 0 {
		return r.str(s)
	}
	parts := []string{s}
	if separator != "" {
		parts = strings.Split(s, separator)
	} else if runes := []rune(s); len(runes) > 1 {
		n := 1 + r.IntN(len(runes)-1)
		parts = []string{string(runes[:n]), string(runes[n:])}
	}
	var all []string
	for _, p := range parts {
		all = append(all, block(p))
	}
	return r.list("[]", false, all...)
}

func (r render) block(kind string, members ...string) string {
	return r.list("{}", true, append(members, r.member("type", r.str(kind)))...)
}

func (r render) textBlock(kind string) func(string) string {
	return func(s string) string {
		return r.block(kind, r.member("text", r.str(s)), r.member("cache_control", []string{"", "null", `{"type":"ephemeral"}`}[r.IntN(3)]))
	}
}

func (r render) anthropicMembers(c conversation) map[string]string {
	m := map[string]string{"tools": r.tools(c, func(t string) string {
		return r.list("{}", true, r.member("name", r.str(t)), r.member("input_schema", `{"type":"object"}`), r.member("cache_control", []string{"", "{}"}[r.IntN(2)]))
	})}
	var turns []string
	for i, t := range c.turns {
		said := strings.Join(t.content, "")
		switch {
		case i == 0 && t.role == "system":
			m["system"] = r.texts(said, "", r.textBlock("text"))
			if list, ok := strings.CutPrefix(m["system"], "["); ok && r.IntN(2) == 0 {
				m["system"] = "[" + r.textBlock("text")("x-anthropic-billing-header: "+text(r.Rand, 9)) + "," + list
			}
		case t.role == "system":
			turns = append(turns, r.list("{}", true, r.member("role", r.str("system")), r.member("content", r.texts(said, "", r.textBlock("text")))))
		case t.role == "tool":
			result := r.block("tool_result", r.member("tool_use_id", r.str(t.id)), r.member("content", r.texts(said, "\n", r.textBlock("text"))))
			blocks := []string{result}
			if t.image != "" {
				blocks = append(blocks, r.image(t.image))
			}
			turns = append(turns, r.list("{}", true, r.member("role", r.str("user")), r.member("content", r.list("[]", false, blocks...))))
		default:
			turns = append(turns, r.anthropicTurn(t))
		}
	}
	m["messages"] = r.list("[]", false, turns...)
	return m
}

func (r render) image(data string) string {
	source := r.list("{}", true, r.member("type", r.str("base64")), r.member("data", r.str(data)), r.member("media_type", `"image/png"`))
	return r.block("image", r.member("source", source))
}

func (r render) anthropicTurn(t turn) string {
	var blocks []string
	if t.role == "assistant" && t.id != "" {
		blocks = append(blocks, r.block("thinking", r.member("thinking", r.str(t.id)), r.member("signature", r.str(text(r.Rand, 5)))))
		blocks = append(blocks, r.block("redacted_thinking", r.member("data", r.str(text(r.Rand, 5)))))
	}
	for _, p := range t.content {
		blocks = append(blocks, r.textBlock("text")(p))
		if r.IntN(3) == 0 {
			blocks = append(blocks, r.textBlock("text")(""))
		}
	}
	if t.image != "" {
		blocks = append(blocks, r.image(t.image))
	}
	if t.call != [2]string{} {
		input := r.list("{}", false, r.member("q", r.str(t.call[1])))
		blocks = append(blocks, r.block("tool_use", r.member("id", r.str(t.id)), r.member("name", r.str(t.call[0])), r.member("input", input)))
	}
	content := r.list("[]", false, blocks...)
	if len(blocks) == 1 && len(t.content) == 1 && t.content[0] != "" && r.IntN(2) == 0 {
		content = r.str(t.content[0])
	}
	return r.list("{}", true, r.member("role", r.str(t.role)), r.member("content", content))
}

func (r render) responsesMembers(c conversation) map[string]string {
	m := map[string]string{"tools": r.tools(c, func(t string) string {
		return r.list("{}", true, r.member("type", r.str("function")), r.member("name", r.str(t)))
	})}
	var items []string
	for i, t := range c.turns {
		said := strings.Join(t.content, "")
		switch {
		case i == 0 && t.role == "system":
			m["instructions"] = r.str(said)
		case t.role == "tool":
			items = append(items, r.block("function_call_output", r.member("call_id", r.str(t.id)), r.member("output", r.content(t, "output_text"))))
		default:
			item := r.list("{}", true, r.member("role", r.str(t.role)), r.member("content", r.content(t, "input_text")), r.member("type", []string{"", `"message"`}[r.IntN(2)]))
			items = append(items, item)
			if t.call != [2]string{} {
				items = append(items, r.block("function_call", r.member("call_id", r.str(t.id)), r.member("name", r.str(t.call[0])), r.member("arguments", r.str(t.call[1]))))
			}
		}
	}
	m["input"] = r.list("[]", false, items...)
	return m
}

func (r render) content(t turn, kind string) string {
	if len(t.content) == 1 && t.image == "" && r.IntN(2) == 0 {
		return r.str(t.content[0])
	}
	var parts []string
	for _, p := range t.content {
		parts = append(parts, r.block(kind, r.member("text", r.str(p))))
	}
	if t.image != "" {
		parts = append(parts, r.block("input_image", r.member("image_url", r.str(t.image)), r.member("detail", []string{"", `"high"`}[r.IntN(2)])))
	}
	return r.list("[]", false, parts...)
}

// batch is the conversation's texts as a list of prompts, or its first alone.
func (r render) batch(c conversation) string {
	var all []string
	for _, t := range c.turns {
		for _, p := range t.content {
			all = append(all, r.str(p))
		}
	}
	if len(all) == 1 && r.IntN(2) == 0 {
		return all[0]
	}
	return r.list("[]", false, all...)
}
