package replica

import (
	"encoding/json"
	"net/http"
)

// whole answers in one piece once every sequence is over; headers come with it, as vLLM's do.
func (j *job) whole(w http.ResponseWriter, r *http.Request, f form) {
	for _, s := range j.seqs {
		for s.tokens.Load() < int64(s.Output) {
			j.wait(r)
		}
	}
	writeJSON(w, http.StatusOK, f.answer())
}

func (j *job) answer() any {
	out := completion{ID: j.id, Object: "text_completion", Created: j.created, Model: json.RawMessage(j.model),
		Fingerprint: fingerprint, Usage: j.usage()}
	if j.kind == chat {
		out.Object = "chat.completion"
	}
	for i, s := range j.seqs {
		text := string(answer(nil, 0, s.Output))
		c := choice{Index: i, FinishReason: s.reason}
		if j.kind == chat {
			c.Message = &reply{Role: "assistant", Content: text, ToolCalls: []struct{}{}}
		} else {
			c.Text = &text
		}
		out.Choices = append(out.Choices, c)
	}
	return out
}

// completion is the answer to both kinds of request; a choice has Message or Text.
type completion struct {
	ID          string          `json:"id"`
	Object      string          `json:"object"`
	Created     int64           `json:"created"`
	Model       json.RawMessage `json:"model"`
	Choices     []choice        `json:"choices"`
	ServiceTier *string         `json:"service_tier"`
	Fingerprint string          `json:"system_fingerprint"`
	Usage       usage           `json:"usage"`
}

type choice struct {
	Index        int       `json:"index"`
	Message      *reply    `json:"message,omitempty"`
	Text         *string   `json:"text,omitempty"`
	Logprobs     *struct{} `json:"logprobs"`
	FinishReason string    `json:"finish_reason"`
	StopReason   *string   `json:"stop_reason"`
	TokenIDs     []int     `json:"token_ids"`
}

type reply struct {
	Role      string     `json:"role"`
	Content   string     `json:"content"`
	Refusal   *string    `json:"refusal"`
	ToolCalls []struct{} `json:"tool_calls"`
}

// serveModels lists the one model.
func (s *Server) serveModels(w http.ResponseWriter) {
	type permission struct {
		ID           string  `json:"id"`
		Object       string  `json:"object"`
		Created      int64   `json:"created"`
		CreateEng    bool    `json:"allow_create_engine"`
		Sampling     bool    `json:"allow_sampling"`
		Logprobs     bool    `json:"allow_logprobs"`
		Search       bool    `json:"allow_search_indices"`
		View         bool    `json:"allow_view"`
		FineTuning   bool    `json:"allow_fine_tuning"`
		Organization string  `json:"organization"`
		Group        *string `json:"group"`
		Blocking     bool    `json:"is_blocking"`
	}
	type model struct {
		ID          string       `json:"id"`
		Object      string       `json:"object"`
		Created     int64        `json:"created"`
		OwnedBy     string       `json:"owned_by"`
		Root        string       `json:"root"`
		Parent      *string      `json:"parent"`
		MaxModelLen int          `json:"max_model_len"`
		Permission  []permission `json:"permission"`
	}
	m := model{ID: s.cfg.Model, Object: "model", Created: s.created, OwnedBy: "vllm", Root: s.cfg.Model, MaxModelLen: s.cfg.MaxModelLen}
	m.Permission = []permission{{ID: "modelperm-0000000000000001", Object: "model_permission", Created: s.created,
		Sampling: true, Logprobs: true, View: true, Organization: "*"}}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []model{m}})
}
