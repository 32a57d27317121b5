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
	chat         bool
	includeUsage bool
	id           string
	created      int64
	model        string // as a JSON string
	prompts      int    // prompt tokens; a prompt counts once, however many choices it has
	seqs         []*sequence
	wake         chan struct{}
}

// generate answers a chat or a completion. However it ends, its sequences are over when it returns.
func (s *Server) generate(w http.ResponseWriter, r *http.Request, chat bool) {
	body, ok := s.readBody(w, r)
	if !ok {
		return
	}
	req, err := s.parse(body, chat)
	var j *job
	if err == nil {
		j, err = s.newJob(req, chat)
	}
	if err == nil {
		var alive bool
		if err, alive = s.engine.submit(j.seqs); !alive {
			panic(http.ErrAbortHandler)
		}
	}
	if err != nil {
		writeError(w, asAPI(err))
		return
	}
	defer s.engine.abort(j.seqs)
	if req.Stream {
		j.stream(w, r)
	} else {
		j.whole(w, r)
	}
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
func (s *Server) newJob(r *request, chat bool) (*job, error) {
	texts := [][]byte{nil}
	var err error
	if chat {
		texts[0] = chatText(r)
	} else if texts, err = promptTexts(r.Prompt); err != nil {
		return nil, err
	}
	if len(texts)**r.N > maxChoices {
		return nil, &apiError{http.StatusBadRequest, fmt.Sprintf("%d prompts with n = %d are more than %d choices", len(texts), *r.N, maxChoices), typeBadRequest, "n"}
	}
	model, _ := json.Marshal(s.cfg.Model) // a string always has a JSON form
	j := &job{chat: chat, includeUsage: r.StreamOptions.IncludeUsage, created: time.Now().Unix(), model: string(model),
		wake: make(chan struct{}, 1)}
	j.id = fmt.Sprintf("cmpl-%016x", rand.Uint64())
	if chat {
		j.id = "chat" + j.id
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
