package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// job is one request being answered: a sequence for each choice.
type job struct {
	kind         kind
	includeUsage bool
	base64       bool // of embeddings
	id           string
	created      int64
	model        string   // as a JSON string
	texts        [][]byte // embedded; the others' are not kept
	prompts      int      // prompt tokens; a prompt counts once, however many choices it has
	seqs         []*sequence
	wake         chan struct{}
}

// generate answers a request of a kind. However it ends, its sequences are over when it returns.
func (s *Server) generate(w http.ResponseWriter, r *http.Request, k kind) {
	body, ok := s.readBody(w, r)
	if !ok {
		return
	}
	req, err := s.parse(body, k)
	var j *job
	if err == nil {
		j, err = s.newJob(req, k)
	}
	if err == nil && k == countTokens {
		writeJSON(w, http.StatusOK, object{"input_tokens": j.prompts, "context_management": object{"original_input_tokens": j.prompts}})
		return
	}
	if err == nil {
		var alive bool
		if err, alive = s.engine.submit(j.seqs); !alive {
			panic(http.ErrAbortHandler)
		}
	}
	if err != nil {
		k.refuse(w, asAPI(err))
		return
	}
	defer s.engine.abort(j.seqs)
	if req.Stream {
		j.stream(w, r, j.form())
	} else {
		j.whole(w, r, j.form())
	}
}

// form writes an answer as one API does. Between open and end a stream's events are those of its choices.
type form interface {
	answer() any                              // whole, once every sequence is over
	open(buf []byte) []byte                   // goes out with the headers
	first(buf []byte, i int) []byte           // before the first token of choice i
	chunk(buf []byte, i, from, to int) []byte // tokens from up to but not including to
	end(buf []byte) []byte
}

// form returns the form of the job's kind; the job itself is that of chats and completions.
func (j *job) form() form {
	switch j.kind {
	case messages:
		return anthropic{j}
	case responses:
		return &response{job: j}
	case embeddings:
		return embedded{j}
	}
	return j
}

// asAPI maps an error to the answer for it: what is no apiError is the model's refusal.
func asAPI(err error) apiError {
	var a *apiError
	if errors.As(err, &a) {
		return *a
	}
	return apiError{http.StatusBadRequest, err.Error(), typeBadRequest, "input_tokens"}
}

// newJob turns a request into sequences. The error is an *apiError.
func (s *Server) newJob(r *request, k kind) (*job, error) {
	texts := [][]byte{nil}
	var err error
	if !k.texts() {
		texts[0] = chatText(r)
	} else if texts, err = promptTexts(r.Prompt, k.field()); err != nil {
		return nil, err
	}
	if len(texts)**r.N > maxChoices {
		return nil, &apiError{http.StatusBadRequest, fmt.Sprintf("%d prompts with n = %d are more than %d choices", len(texts), *r.N, maxChoices), typeBadRequest, "n"}
	}
	model, _ := json.Marshal(s.cfg.Model) // a string always has a JSON form
	j := &job{kind: k, base64: r.Encoding == "base64", includeUsage: r.StreamOptions.IncludeUsage, created: time.Now().Unix(), model: string(model),
		wake: make(chan struct{}, 1)}
	j.id = fmt.Sprintf("cmpl-%016x", rand.Uint64())
	if !k.texts() {
		j.id = "chat" + j.id
	}
	if k == embeddings {
		j.texts = texts
	}
	for _, text := range texts {
		tokens := len(text) / tokenBytes
		output, reason, err := s.outputs(r, tokens)
		if err != nil {
			return nil, err
		}
		j.prompts += tokens
		hashes := blockHashes(s.seed(r), text, output)
		for i := range *r.N {
			j.seqs = append(j.seqs, &sequence{Seq: step.Seq{Hashes: hashes, Prompt: tokens, Output: output},
				reason: reason, wake: j.wake, stream: r.Stream, leads: i == 0})
		}
	}
	return j, nil
}

// wait blocks until a sequence has something new. When the client or the engine is gone it ends the
// handler: there is nobody to answer, or nothing more to say.
func (j *job) wait(r *http.Request) {
	select {
	case <-j.wake:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
	for _, s := range j.seqs {
		if s.killed.Load() {
			panic(http.ErrAbortHandler)
		}
	}
}

type usage struct {
	Prompt     int          `json:"prompt_tokens"`
	Total      int          `json:"total_tokens"`
	Completion int          `json:"completion_tokens"`
	Details    usageDetails `json:"prompt_tokens_details"`
}

type usageDetails struct {
	Cached  int `json:"cached_tokens"`
	Created int `json:"created_cache_tokens"` // 0 in the recording; what would fill it is not known
}

// usage counts a job whose sequences are over.
func (j *job) usage() usage {
	u := usage{Prompt: j.prompts}
	for _, s := range j.seqs {
		u.Completion += s.Output
		if s.leads {
			u.Details.Cached += s.Cached
		}
	}
	u.Total = u.Prompt + u.Completion
	return u
}
