package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// maxLine bounds a line of an event stream; vLLM's longest, with usage, has some 400 bytes.
const maxLine = 64 << 10

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, maxLine) }}

// errCut is an answer that ended before its [DONE].
var errCut = errors.New("load: the stream ended before [DONE]")

// do sends one request and reads its answer.
func (g *Generator) do(ctx context.Context, a *Arrival, intended time.Time) Result {
	g.sent.Add(1)
	r := Result{Kind: a.Kind}
	since := func() time.Duration { return g.model(time.Since(intended)) }
	// The transport calls from a goroutine of its own, and possibly again for a retry on a new connection;
	// reading Late after the response headers is ordered after the first call only.
	var mu sync.Mutex
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
		mu.Lock()
		defer mu.Unlock()
		r.Late = since()
	}}
	settle := sync.OnceFunc(func() { g.settled.Add(1) })
	resp, err := g.send(httptrace.WithClientTrace(ctx, trace), a)
	if err == nil {
		err = r.read(resp, func() {
			r.First = since()
			settle()
		})
	}
	settle()
	r.Total = since()
	mu.Lock()
	defer mu.Unlock()
	if r.Err = err; err != nil {
		g.failed.Add(1)
	}
	g.done.Add(1)
	return r
}

func (g *Generator) send(ctx context.Context, a *Arrival) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+a.Path, bytes.NewReader(a.Body))
	if err != nil {
		return nil, err
	}
	for name, values := range a.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	return g.client.Do(req)
}

// read takes the answer in, to its end. first, which sets First, is called at its first text.
func (r *Result) read(resp *http.Response, first func()) error {
	defer resp.Body.Close()
	r.Status, r.Replica = resp.StatusCode, resp.Header.Get("X-Replica")
	if r.Status != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
		return fmt.Errorf("load: status %d: %s", r.Status, bytes.TrimSpace(text))
	}
	br := readers.Get().(*bufio.Reader)
	br.Reset(resp.Body)
	defer func() {
		br.Reset(nil)
		readers.Put(br)
	}()
	last, err := r.events(br, first)
	if err != nil {
		return err
	}
	if r.First == 0 {
		return errors.New("load: an answer without text")
	}
	var event struct{ Usage *Usage }
	if err := json.Unmarshal(last, &event); err != nil || event.Usage == nil {
		return fmt.Errorf("load: no usage in the last event: %.200s", last)
	}
	r.Usage = *event.Usage
	return nil
}

var (
	data  = []byte("data: ")
	done  = []byte("[DONE]")
	fault = []byte(`{"error"`)
	// textKeys begin the text of a chat's and of a completion's event; empty text is followed by a quote.
	textKeys = [][]byte{[]byte(`"content":"`), []byte(`"text":"`)}
)

// events reads up to [DONE] and returns the event before it. It decodes none: a token costs a copy. first must set First.
func (r *Result) events(br *bufio.Reader, first func()) (last []byte, err error) {
	for {
		line, err := br.ReadSlice('\n')
		if err == io.EOF {
			return nil, errCut
		}
		if err != nil {
			return nil, err
		}
		event, ok := bytes.CutPrefix(bytes.TrimSpace(line), data)
		switch {
		case !ok: // the empty line after an event, or a comment
		case bytes.Equal(event, done):
			_, err := io.Copy(io.Discard, br) // to the end, so that the connection is used again
			return last, err
		case bytes.HasPrefix(event, fault):
			return nil, fmt.Errorf("load: %.200s", event)
		default:
			if r.First == 0 && hasText(event) {
				first()
			}
			last = append(last[:0], event...)
		}
	}
}

func hasText(event []byte) bool {
	for _, t := range textKeys {
		if i := bytes.Index(event, t); i >= 0 && i+len(t) < len(event) && event[i+len(t)] != '"' {
			return true
		}
	}
	return false
}
