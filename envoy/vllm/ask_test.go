//go:build vllm

package vllm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// question is a request. The prompt is a text, token ids or a list of these; a chat, if any, is sent in its place.
type question struct {
	prompt  any
	chat    []message
	salt    string // that keeps its cache apart
	stream  bool
	answer  int           // tokens of it, exactly
	n       int           // answers; 0: one
	headers bool          // its client leaves when it has the headers,
	after   time.Duration // or so long later
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// answer is what came of a question, for its client and, after settle, for Envoy and weir.
type answer struct {
	id     int
	asked  question
	status int   // 0: none came
	err    error // of a client that got no whole answer
	usage  usage
	first  time.Duration // to the first token; 0: not streamed
	took   time.Duration
	entry
}

type usage struct {
	Prompt  int `json:"prompt_tokens"`
	Output  int `json:"completion_tokens"`
	Details struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (q question) body() (path string, body []byte) {
	fields := map[string]any{"model": model, "max_tokens": q.answer, "ignore_eos": true, "stream": q.stream}
	if q.stream {
		fields["stream_options"] = map[string]any{"include_usage": true}
	}
	path = "/v1/completions"
	if q.n > 0 {
		fields["n"] = q.n
	}
	if q.salt != "" {
		fields["cache_salt"] = q.salt
	}
	if q.chat != nil {
		path, fields["messages"] = "/v1/chat/completions", q.chat
	} else {
		fields["prompt"] = q.prompt
	}
	body, err := json.Marshal(fields)
	if err != nil {
		panic(err) // the tests' own
	}
	return path, body
}

// answers is how many it gets.
func (q question) answers() int {
	if list, ok := q.prompt.([][]int); ok {
		return len(list)
	}
	return max(q.n, 1)
}

// whole reports whether all of the answer came.
func (a *answer) whole() bool {
	return a.status == http.StatusOK && a.err == nil && a.usage.Output == a.asked.answer*a.asked.answers()
}

// begin gives a question its id. They are in the order of the answers in rig.asked.
func (r *rig) begin(q question) *answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &answer{id: len(r.asked), asked: q}
	r.asked = append(r.asked, a)
	return a
}

var errLeft = errors.New("the client left")

// ask sends a question and reads the whole answer. A client may leave by ctx.
func (r *rig) ask(ctx context.Context, q question) *answer {
	a := r.begin(q)
	path, body := q.body()
	req, err := http.NewRequestWithContext(ctx, "POST", fmt.Sprintf("%s%s?id=%d", r.front, path, a.id), bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("content-type", "application/json")
	begun := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.err = err
		return a
	}
	defer resp.Body.Close()
	if a.status = resp.StatusCode; q.headers {
		time.Sleep(q.after)
		a.err = errLeft
		return a
	}
	a.err = a.read(resp, begun)
	a.took = time.Since(begun)
	return a
}

func (a *answer) read(resp *http.Response, begun time.Time) error {
	if !strings.HasPrefix(resp.Header.Get("content-type"), "text/event-stream") {
		var told struct{ Usage usage }
		text, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode == http.StatusOK {
			err = json.Unmarshal(text, &told)
		}
		a.usage = told.Usage
		return err
	}
	ended := false
	for in := bufio.NewScanner(resp.Body); ; {
		if !in.Scan() {
			if err := in.Err(); err != nil || ended {
				return err
			}
			return io.ErrUnexpectedEOF
		}
		data, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok {
			continue
		}
		if ended = data == "[DONE]"; ended {
			continue
		}
		var event struct {
			Choices []json.RawMessage
			Usage   *usage
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return err
		}
		if len(event.Choices) > 0 && a.first == 0 && !strings.Contains(data, `"role":"assistant"`) { // that comes before any work
			a.first = time.Since(begun)
		}
		if event.Usage != nil {
			a.usage = *event.Usage
		}
	}
}

// must is ask for one whose answer must come whole, with nothing else under way.
func (r *rig) must(t *testing.T, q question) *answer {
	t.Helper()
	a := r.ask(t.Context(), q)
	r.settle(t)
	r.whole(t, a)
	return a
}

// whole wants an answer to be whole and as it was decided: one try, at the replica that weir picked.
func (r *rig) whole(t *testing.T, answers ...*answer) {
	t.Helper()
	for _, a := range answers {
		if !a.whole() {
			t.Errorf("request %d: status %d, %d of %d tokens, %v", a.id, a.status, a.usage.Output, a.asked.answer*a.asked.answers(), a.err)
		}
		if a.Attempts != 1 || a.Served == "" || a.Served != a.Weir.text("endpoint") || a.Weir.text("decision") != "picked" {
			t.Errorf("request %d: %d attempts, served by %s, weir %v", a.id, a.Attempts, a.Served, a.Weir)
		}
	}
}
