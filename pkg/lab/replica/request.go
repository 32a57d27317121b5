package replica

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// maxChoices bounds n times the prompts of one request, so that a small body cannot make endless work.
const maxChoices = 1024

// request is what the server reads of a completion or chat body, and what it makes of those of other APIs; it ignores
// all else, as sampling has no effect on filler.
type request struct {
	Model               string          `json:"model"`
	Messages            []message       `json:"messages"`
	Prompt              json.RawMessage `json:"prompt"`
	Input               json.RawMessage `json:"input"` // of embeddings: their Prompt
	Encoding            string          `json:"encoding_format"`
	Tools               json.RawMessage `json:"tools"`
	CacheSalt           string          `json:"cache_salt"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	N                   *int            `json:"n"`
	Stream              bool            `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type message struct {
	Role      string          `json:"role"`
	Content   content         `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
}

// parse reads a body and checks what vLLM would check. The error is an *apiError.
func (s *Server) parse(body []byte, k kind) (*request, error) {
	r, err := k.read(body)
	var refused *apiError
	if errors.As(err, &refused) {
		return nil, err
	}
	if err != nil {
		return nil, syntaxError(err)
	}
	if r.Model != "" && r.Model != s.cfg.Model {
		return nil, &apiError{http.StatusNotFound,
			fmt.Sprintf("The model `%s` does not exist. Valid aliases: %s.", r.Model, s.cfg.Model), "NotFoundError", "model"}
	}
	field, missing := k.field(), len(r.Messages) == 0
	if k.texts() {
		missing = isNull(r.Prompt)
	} else if k == messages && r.MaxTokens == nil {
		field, missing = "max_tokens", true
	}
	if missing {
		return nil, &apiError{http.StatusBadRequest,
			fmt.Sprintf("1 validation error:\n  {'type': 'missing', 'loc': 'body.%s', 'msg': 'Field required'}", field), "Bad Request", "body." + field}
	}
	return r, r.checkNumbers(k)
}

// checkNumbers completes and checks the numbers that shape the answer. The error is an *apiError.
func (r *request) checkNumbers(k kind) error {
	if r.MaxCompletionTokens == nil || k != chat {
		r.MaxCompletionTokens = r.MaxTokens
	}
	if m := r.MaxCompletionTokens; m != nil && *m < 1 {
		return &apiError{http.StatusBadRequest, fmt.Sprintf("max_tokens must be at least 1, got %d.", *m), typeBadRequest, "max_tokens"}
	}
	if r.N == nil {
		r.N = new(1)
	}
	if *r.N < 1 || *r.N > maxChoices {
		return &apiError{http.StatusBadRequest, fmt.Sprintf("n must be from 1 to %d, got %d.", maxChoices, *r.N), typeBadRequest, "n"}
	}
	return nil
}

// syntaxError says where a body is wrong, in the form in which vLLM (pydantic) says it.
func syntaxError(err error) *apiError {
	kind, loc, msg := "json_invalid", "body", "JSON decode error"
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		loc = fmt.Sprintf("body.%d", syntax.Offset)
	case errors.As(err, &typed):
		kind, loc, msg = "type_error", "body."+typed.Field, "Wrong type"
	}
	text := fmt.Sprintf("1 validation error:\n  {'type': '%s', 'loc': '%s', 'msg': '%s', 'ctx': {'error': '%v'}}", kind, loc, msg, err)
	return &apiError{http.StatusBadRequest, text, "Bad Request", loc}
}

// outputs is the answer tokens for a prompt and why they end, or an *apiError when they do not fit the
// model's context.
func (s *Server) outputs(r *request, prompt int) (n int, reason string, err error) {
	room := s.cfg.MaxModelLen - prompt
	asked := min(s.cfg.DefaultOutput, room)
	if r.MaxCompletionTokens != nil {
		asked = *r.MaxCompletionTokens
	}
	if room < 1 || asked > room {
		return 0, "", &apiError{http.StatusBadRequest,
			fmt.Sprintf("This model's maximum context length is %d tokens: the prompt has %d and %d are requested.", s.cfg.MaxModelLen, prompt, max(asked, 1)),
			typeBadRequest, "input_tokens"}
	}
	if r.MaxCompletionTokens == nil {
		return asked, "stop", nil
	}
	if s.cfg.CapOutput && asked > s.cfg.DefaultOutput {
		return s.cfg.DefaultOutput, "stop", nil
	}
	return asked, "length", nil
}

func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}
