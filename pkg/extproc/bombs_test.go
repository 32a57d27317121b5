package extproc_test

import (
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/andybalholm/brotli"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/route"
)

// must is for encoders that fail only for wrong options.
func must[W io.WriteCloser](w W, err error) io.WriteCloser {
	if err != nil {
		panic(err)
	}
	return w
}

// encoders are the codings, deflate in both of its forms.
var encoders = []struct {
	name string
	to   func(io.Writer) io.WriteCloser
}{
	{"gzip", func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }},
	{"deflate", func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }},
	{"deflate", func(w io.Writer) io.WriteCloser { return must(flate.NewWriter(w, 6)) }},
	{"br", func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, 4) }},
	{"zstd", func(w io.Writer) io.WriteCloser { return must(zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))) }},
}

// begun counts the streams of which weir got the headers.
type begun struct {
	grpc.ServerStream
	n *atomic.Int64
}

func (b begun) RecvMsg(m any) error {
	err := b.ServerStream.RecvMsg(m)
	if err == nil && m.(*extprocv3.ProcessingRequest).GetRequestHeaders() != nil {
		b.n.Add(1)
	}
	return err
}

// leaves is when a client goes.
type leaves int

const (
	stays leaves = iota
	early        // before the body is whole
	late         // right after, while it is undone
)

// bomber is a client with a compressed body.
type bomber struct {
	mode     mode
	encoding string
	text     string // what it has for weir to read; told apart by max_tokens
	body     string
	reason   string // why it is not read; "": it is
	leaves   leaves
}

// bombers are n clients whose bodies are good ones, bombs and ones cut short, by turns; two of five leave.
func bombers(t *testing.T, n, limit int) []bomber {
	bombs := map[int]string{}
	for i, e := range encoders {
		bombs[i] = encoded(t, `{"prompt":"`+strings.Repeat("a", 10*limit)+`"}`, e.to)
	}
	all := make([]bomber, n)
	for i := range all {
		coding, kind, mode, goes := i%len(encoders), i/5%4, modes[i/20%2], []leaves{stays, stays, stays, early, late}[i/40%5]
		text := fmt.Sprintf(`{"model":"m","max_tokens":%d,"prompt":"%s"}`, i+1, strings.Repeat(fmt.Sprintf("client %d of many. ", i), 400))
		b := bomber{mode: mode, encoding: encoders[coding].name, text: text, body: encoded(t, text, encoders[coding].to), leaves: goes}
		switch kind {
		case 2:
			b.body, b.reason = bombs[coding], "inflated"
		case 3:
			b.body, b.reason = b.body[:len(b.body)/2], "encoding"
		}
		all[i] = b
	}
	return all
}

// TestManyBombsAtOnce has 200 clients send compressed bodies at once. With much memory and with little each request has one
// outcome, and nothing of it is left; who stayed and is read is read as its own text, and with enough memory all good ones are.
func TestManyBombsAtOnce(t *testing.T) {
	const limit, clients = 64 << 10, 200
	sent := bombers(t, clients, limit)
	for memory, exact := range map[int]bool{1 << 30: true, 3 * limit: false} {
		var headers atomic.Int64
		count := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			return next(srv, begun{ss, &headers})
		}
		withFake(t, options{limit: limit, memory: memory, seats: clients, intercept: count}, func(f *fake) {
			want := make([]chain.Chain, clients)
			for i, b := range sent {
				c := f.call(buffered)
				c.request(b.text, ":path", "/v1/completions", "content-length", "")
				c.replies()
				c.close()
				want[i] = f.one().Prompt.Chain
			}
			headers.Store(0)
			var all sync.WaitGroup
			for _, b := range sent {
				all.Go(func() { f.squeezed(b, exact) })
			}
			all.Wait()
			ended := f.take()
			if n := int(headers.Load()); len(ended) != n || n < clients*3/5 {
				t.Errorf("%d outcomes of %d requests", len(ended), n)
			}
			read := 0
			for _, d := range ended {
				if len(d.Prompt.Chain) == 0 {
					continue
				}
				read++
				if i := d.Prompt.MaxTokens - 1; i < 0 || sent[i].reason != "" || !slices.Equal(d.Prompt.Chain, want[i]) {
					t.Errorf("client %d is read as another text, of %d blocks", i, len(d.Prompt.Chain))
				}
			}
			if n := outcomes(ended); exact && (read < clients*3/10 || n[route.NoMemory] > 0) || read == 0 {
				t.Errorf("%d are read, outcomes %v", read, n)
			}
		})
	}
}

// squeezed sends one compressed body. Who stays learns, with enough memory, the reason for which it is not read.
func (f *fake) squeezed(b bomber, exact bool) {
	c := f.call(b.mode)
	defer c.cancel()
	c.headers(false, ":path", "/v1/completions", "content-encoding", b.encoding, "content-length", "")
	body := b.body
	if b.mode == buffered {
		c.replies()
	} else {
		c.body(body[:len(body)/2], false)
		body = body[len(body)/2:]
	}
	if b.leaves == early {
		return
	}
	c.body(body, true)
	if b.leaves == late {
		return
	}
	c.replies()
	if got := c.check.record.GetFields()["reason"].GetStringValue(); exact && got != b.reason {
		f.t.Errorf("%v, %s: reason %q, want %q", b.mode, b.encoding, got, b.reason)
	}
	c.close()
}
