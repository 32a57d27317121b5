package replica

import (
	"encoding/json"
	"net/http"
)

// kind is what a request asks for.
type kind int

const (
	completions kind = iota
	chat
	messages    // Anthropic's
	countTokens // Anthropic's: only the tokens of the prompt
	responses
	embeddings
)

// field is where a body of the kind has its prompt.
func (k kind) field() string {
	return [...]string{"prompt", "messages", "messages", "messages", "input", "input"}[k]
}

// texts reports whether the prompt is texts or token ids, and not a conversation.
func (k kind) texts() bool { return k == completions || k == embeddings }

// read reads a body of the kind into the form of a chat or of a completion, as vLLM does with the other APIs'.
func (k kind) read(body []byte) (*request, error) {
	switch k {
	case messages, countTokens:
		var m messagesRequest
		if err := json.Unmarshal(body, &m); err != nil {
			return nil, err
		}
		return m.chat(), nil
	case responses:
		var m responsesRequest
		if err := json.Unmarshal(body, &m); err != nil {
			return nil, err
		}
		return m.chat()
	}
	r := &request{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, err
	}
	if k == embeddings {
		r.Prompt, r.MaxTokens, r.N, r.Stream = r.Input, new(1), nil, false // the one step that its prefill ends with
	}
	return r, nil
}

// refuse answers with an error. Anthropic's clients get it in their API's form, but not where a body breaks the schema,
// which vLLM answers before it knows whose it is.
func (k kind) refuse(w http.ResponseWriter, e apiError) {
	if k != messages && k != countTokens || e.kind == "Bad Request" {
		writeError(w, e)
		return
	}
	type object struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	writeJSON(w, e.code, struct {
		Type  string `json:"type"`
		Error object `json:"error"`
	}{"error", object{e.kind, e.message}})
}
