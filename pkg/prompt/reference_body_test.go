package prompt

import (
	"encoding/json"

	"github.com/weirproxy/weir/pkg/chain"
)

// textual reports whether a value may be a prompt of text or ids.
func textual(raw json.RawMessage) bool {
	list, ok := array(raw)
	return len(raw) > 0 && raw[0] == '"' || ok && (len(list) == 0 || list[0][0] != '{')
}

// prompt reads the prompt; of one that the server keeps a part of, it counts what the body has.
func (w *wanted) prompt(m map[string]json.RawMessage, at ToolsPosition, salt string) Reason {
	r := w.found(m, at, salt)
	if w.API == APIResponses && (!isEmpty(m["previous_response_id"]) || !isEmpty(m["conversation"]) || len(m["prompt"]) > 0 && m["prompt"][0] == '{') {
		return ReasonStored
	}
	return r
}

// found reads the API's own member, or another that is a prompt.
func (w *wanted) found(m map[string]json.RawMessage, at ToolsPosition, salt string) Reason {
	messages, isChat := array(m["messages"])
	input, isList := array(m["input"])
	isInput := isList || len(m["input"]) > 0 && m["input"][0] == '"'
	if !isList && isInput {
		input = []json.RawMessage{json.RawMessage(`{"role":"user","content":` + string(m["input"]) + `}`)}
	}
	chat := func(api API, list []json.RawMessage) Reason {
		out, stored, ok := conversationOf(w.API, api, at, m, list)
		w.stream = out
		if ok {
			w.Tokens = max(1, atMost(m, ceil4(len(out))))
		}
		switch {
		case stored:
			return ReasonStored
		case !ok:
			return ReasonShape
		}
		return ReasonNone
	}
	own := w.API
	switch {
	case own == APICompletions && textual(m["prompt"]):
		return w.completion(m, m["prompt"], salt)
	case own == APIEmbeddings && textual(m["input"]):
		return w.completion(m, m["input"], salt)
	case own == APIResponses:
		if isInput {
			return chat(APIResponses, input)
		}
	case (own == APIMessages || own == APICount) && isChat:
		return chat(own, messages)
	}
	switch {
	case isChat:
		return chat(APIChat, messages)
	case textual(m["prompt"]):
		return w.completion(m, m["prompt"], salt)
	case own == APIEmbeddings && isList:
		return chat(APIChat, input)
	case own != APIEmbeddings && isInput:
		return chat(APIResponses, input)
	}
	return ReasonShape
}

// atMost is the tokens of a prompt that may be cut.
func atMost(m map[string]json.RawMessage, n int) int {
	if longest := limitOf(m["truncate_prompt_tokens"]); longest > 0 {
		n = min(n, longest)
	}
	return n
}

// completion reads a prompt of text or token ids, or a list of such.
func (w *wanted) completion(m map[string]json.RawMessage, prompt json.RawMessage, salt string) Reason {
	items := []json.RawMessage{prompt}
	if list, ok := array(prompt); ok && (len(list) == 0 || list[0][0] == '"' || list[0][0] == '[') {
		items = list
		w.Prompts = min(max(len(list), 1), 1024)
	}
	for i, it := range items {
		out, ids, ok := itemOf(it)
		if !ok {
			return ReasonShape
		}
		if i == 0 && ids {
			w.seed = chain.Seed(w.Model, salt, "ids")
		}
		if i == 0 {
			w.stream = out
		}
		w.Tokens += atMost(m, ceil4(len(out)))
	}
	return ReasonNone
}
