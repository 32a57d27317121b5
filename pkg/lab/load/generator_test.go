package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const answerText = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}

data: {"choices":[{"index":0,"delta":{"content":" one"}}]}

data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":4}}}

data: [DONE]

`

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestLoopIsOpen has a server that answers nobody before all requests are there: a generator that waited
// for an answer before it sent the next would never end.
func TestLoopIsOpen(t *testing.T) {
	const n = 40
	var here atomic.Int64
	all := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if here.Add(1) == n {
			close(all)
		}
		select {
		case <-all:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("x-replica", r.Header.Get("X-Number"))
		fmt.Fprint(w, answerText)
	})
	arrivals := make([]Arrival, n)
	for i := range arrivals {
		arrivals[i] = Arrival{
			At: time.Duration(i) * time.Second, Kind: Chat, Path: "/", Body: []byte("{}"),
			Header: http.Header{"X-Number": {fmt.Sprint(i)}},
		}
	}
	g := New(url, 1000)
	for i, r := range g.Run(limited(t), arrivals) {
		if r.Err != nil || r.Replica != fmt.Sprint(i) || r.Usage.Details.CachedTokens != 4 || r.Usage.PromptTokens != 9 {
			t.Fatalf("result %d: %+v", i, r)
		}
		if r.Late > r.First || r.First > r.Total {
			t.Errorf("result %d: written at %v, first text at %v, end at %v", i, r.Late, r.First, r.Total)
		}
		if last := arrivals[n-1].At - arrivals[i].At; r.First < last {
			t.Errorf("result %d: first text after %v, but the last request came %v later", i, r.First, last)
		}
	}
	if sent, done, failed := g.Progress(); sent != n || done != n || failed != 0 {
		t.Errorf("progress %d, %d, %d", sent, done, failed)
	}
}

// TestTimesCountFromTheIntendedStart holds that lateness is part of every time, at the model's speed.
func TestTimesCountFromTheIntendedStart(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answerText) })
	const late, speed = 2 * time.Second, 3
	r := New(url, speed).Run(limited(t), []Arrival{{At: -late * speed, Path: "/"}})[0] // should have gone before now
	for name, d := range map[string]time.Duration{"Late": r.Late, "First": r.First, "Total": r.Total} {
		if d < speed*late || r.Err != nil {
			t.Errorf("%s = %v, %v: want at least %v", name, d, r.Err, speed*late)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(limited(t))
	g := New(url, 1)
	go func() {
		for sent := 0; sent < 1; sent, _, _ = g.Progress() {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	for i, r := range g.Run(ctx, []Arrival{{Path: "/"}, {Path: "/", At: time.Hour}}) {
		if !errors.Is(r.Err, context.Canceled) {
			t.Errorf("result %d: %v, want the context's error", i, r.Err)
		}
	}
}

func TestAnswers(t *testing.T) {
	completion := strings.NewReplacer(`"delta":{"content":" one"}`, `"text":" one"`).Replace(answerText)
	for name, tc := range map[string]struct {
		status int
		body   string
		want   string // in the error; "" for none
	}{
		"chat":            {200, answerText, ""},
		"completion":      {200, completion, ""},
		"comments":        {200, ": ping\n\n" + answerText, ""},
		"CRLF":            {200, strings.ReplaceAll(answerText, "\n", "\r\n"), ""},
		"no text":         {200, strings.Replace(answerText, " one", "", 1), "without text"},
		"no usage":        {200, strings.Replace(answerText, "usage", "other", 1), "no usage"},
		"cut":             {200, answerText[:len(answerText)-20], "before [DONE]"},
		"empty":           {200, "", "before [DONE]"},
		"error event":     {200, "data: {\"error\": {\"message\": \"no\"}}\n\n" + answerText, `"message": "no"`},
		"refused":         {429, "busy", "status 429: busy"},
		"not an event":    {200, `{"choices":[]}`, "before [DONE]"},
		"an endless line": {200, "data: " + strings.Repeat("x", 2*maxLine) + "\n\n", "buffer full"},
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			fmt.Fprint(w, tc.body)
		})
		r := New(url, 1).Run(limited(t), []Arrival{{Path: "/"}})[0]
		if tc.want == "" && (r.Err != nil || r.First == 0 || r.Usage.CompletionTokens != 1) {
			t.Errorf("%s: %+v", name, r)
		}
		if tc.want != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), tc.want)) {
			t.Errorf("%s: error %v, want %q in it", name, r.Err, tc.want)
		}
		if r.Status != tc.status {
			t.Errorf("%s: status %d", name, r.Status)
		}
	}
}

// TestSettledKnowsTheFirstToken cuts answers that have begun and do not end: when each began stays known.
func TestSettledKnowsTheFirstToken(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		begin, _, _ := strings.Cut(answerText, `data: {"choices":[],"usage"`)
		fmt.Fprint(w, begin)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cut := context.WithCancel(limited(t))
	defer cut()
	g := New(url, 1)
	go func() {
		for g.Settled() < 2 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cut()
	}()
	for i, r := range g.Run(ctx, []Arrival{{Path: "/", Body: []byte("{}")}, {Path: "/", Body: []byte("{}")}}) {
		if !errors.Is(r.Err, context.Canceled) || r.First <= 0 || r.First > r.Total {
			t.Errorf("result %d: first text at %v, end at %v: %v", i, r.First, r.Total, r.Err)
		}
	}
	if g.Settled() != 2 {
		t.Errorf("%d have begun", g.Settled())
	}
}

// TestSettledCountsOnce: an answer that begins and then breaks off, and one that is refused, are one each, and a request
// that has got nothing yet is none.
func TestSettledCountsOnce(t *testing.T) {
	open := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/broken":
			begin, _, _ := strings.Cut(answerText, `data: {"choices":[],"usage"`)
			fmt.Fprint(w, begin)
		case "/refused":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/late":
			select {
			case <-open:
			case <-r.Context().Done():
			}
			fmt.Fprint(w, answerText)
		}
	})
	ctx := limited(t)
	g := New(url, 1)
	before := -1
	go func() {
		defer close(open)
		for _, over, _ := g.Progress(); over < 2 && ctx.Err() == nil; _, over, _ = g.Progress() {
			time.Sleep(time.Millisecond)
		}
		before = g.Settled()
	}()
	results := g.Run(ctx, []Arrival{{Path: "/broken"}, {Path: "/refused"}, {Path: "/late"}})
	if <-open; before != 2 || g.Settled() != 3 {
		t.Errorf("%d have begun or are over with one waiting, %d at the end: want 2 and 3", before, g.Settled())
	}
	if results[0].First == 0 || results[0].Err == nil || results[2].Err != nil {
		t.Errorf("%+v", results)
	}
}
