package replica

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
	"github.com/weirproxy/weir/pkg/scrape"
)

// front is weir's spine before one replica, in real time.
type front struct {
	url    string
	addr   string
	pool   *pool.Pool
	router *route.Router
}

func newFront(t *testing.T) *front {
	t.Helper()
	url, _ := start(t, func(c *Config) { c.Speed, c.DefaultOutput = 1, 20 })
	cfg, _ := pool.Default("8B")
	cfg.Learn, cfg.OutputTokens = false, 20 // the replica's constants are the policy's
	f := &front{url: url, addr: strings.TrimPrefix(url, "http://")}
	f.pool = pool.New("p", []string{f.addr}, cfg)
	f.router = route.New(route.Default(), f.pool)
	return f
}

// scrape reads the replica's page.
func (f *front) scrape(t *testing.T) {
	t.Helper()
	_, page := get(t, f.url+"/metrics")
	s, err := scrape.Parse(strings.NewReader(page), "text/plain; version=0.0.4; charset=utf-8")
	if err != nil {
		t.Fatal(err)
	}
	s.At = time.Now()
	f.router.Observe(s.At, f.addr, s)
}

// asked is what came of a request.
type asked struct {
	matched, cached, prompt int // tokens: for weir, for the replica, and of the prompt
}

// ask sends a request as weir would, and its client leaves after so long; 0: it stays.
func (f *front) ask(t *testing.T, body map[string]any, leaves time.Duration) (a asked) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q := &route.Request{Path: "/v1/completions", Body: text}
	d := f.router.Route(time.Now(), q)
	if d.State != route.Picked {
		t.Fatalf("it is %v, %v", d.State, d.Outcome)
	}
	if leaves > 0 {
		timer := time.AfterFunc(leaves, cancel)
		defer timer.Stop()
	}
	end := route.Unanswered
	req, err := http.NewRequestWithContext(ctx, "POST", f.url+q.Path, strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		end, d.Status = route.Answered, resp.StatusCode
		d.Events = strings.HasPrefix(resp.Header.Get("content-type"), "text/event-stream")
		f.router.Serve(time.Now(), d, f.addr)
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil && !d.Events {
			u := decode[answerBody](t, string(answer)).Usage
			a.cached, a.prompt = u.Details.Cached, u.Prompt
		}
	}
	f.router.Done(time.Now(), d, end)
	a.matched = int(d.Choice.Cached)
	return a
}

// A prompt is left while it is computed, at the headers of its stream and in its midst, streamed and not; and while its answer
// is under way. Asked again, the replica finds in its cache what weir expects there, but for a chunk or so: it works in those.
func TestWhatIsLeftIsAsExpected(t *testing.T) {
	const tokens = 120_000 // 3.5 s of prefill
	for i, c := range []struct {
		stream      bool
		after       time.Duration
		tokens      int
		least, most float64 // share of the prompt
	}{
		{true, time.Millisecond, tokens, 0, 0.2},
		{true, 1500 * time.Millisecond, tokens, 0.15, 0.85},
		{false, 1500 * time.Millisecond, tokens, 0.15, 0.85},
		{true, time.Second, 2000, 0.95, 1},
		{false, time.Second, 2000, 0.95, 1},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			f := newFront(t)
			f.scrape(t)
			text := strings.Repeat(fmt.Sprintf("%07d ", 1000+i), c.tokens/2)
			body := func(answer int, stream bool) map[string]any {
				return map[string]any{"prompt": text, "max_tokens": answer, "stream": stream}
			}
			f.ask(t, body(5000, c.stream), c.after)
			f.scrape(t)
			again := f.ask(t, body(1, false), 0)
			expected, found := float64(again.matched)/float64(again.prompt), float64(again.cached)/float64(again.prompt)
			chunk := 2 * 8192 / float64(again.prompt) // one, and what goes by until the client's leaving is known
			if c.tokens < tokens {
				chunk = 0.05
			}
			if math.Abs(expected-found) > chunk+0.05 || found < c.least || found > c.most {
				t.Errorf("streamed %v, left after %v: %.3f of %d tokens expected, %.3f found", c.stream, c.after, expected, again.prompt, found)
			}
		})
	}
}

// Requests with several answers and lists of prompts, sent by weir alone, look like nobody else's, and what weir predicts of
// them is what the replica counts.
func TestSeveralAnswersAreCounted(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	texts := func(i, n int) any {
		all := make([]string, n)
		for k := range all {
			all[k] = strings.Repeat(fmt.Sprintf("%07d ", 100*i+k), 400)
		}
		if n == 1 {
			return all[0]
		}
		return all
	}
	var clients sync.WaitGroup
	next := make(chan int)
	for range 12 {
		clients.Go(func() {
			for i := range next {
				f.ask(t, map[string]any{"prompt": texts(i, []int{1, 1, 3}[i%3]), "n": []int{1, 8, 2}[i%3]}, 0)
			}
		})
	}
	for i := range 90 {
		if next <- i; i%5 == 0 {
			f.scrape(t)
			if own := f.pool.Own(); own != 1 {
				t.Errorf("own share %v", own)
			}
		}
	}
	close(next)
	clients.Wait()
	f.scrape(t)
	all := f.pool.Truth()
	// Not how many tokens of answers: how soon that is learned is by the clock (package pool has it in virtual time).
	for w, off := range map[pool.What]float64{pool.PromptTokens: 0.05, pool.CachedTokens: 0.15} {
		if got := all[w]; got.Actual == 0 || math.Abs(got.Predicted/got.Actual-1) > off {
			t.Errorf("%+v", got)
		}
	}
	if got, want := all[pool.OutputTokens].Actual, 30*20.0*(1+8+6); got < 0.7*want || got > want {
		t.Errorf("%v tokens of answers are compared, of %v", got, want)
	}
}
