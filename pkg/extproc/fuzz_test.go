package extproc_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirproxy/weir/pkg/extproc"
	"github.com/weirproxy/weir/pkg/route"
)

// fuzzed is one stream that a fuzzer made up.
type fuzzed struct {
	*bench
	t     *testing.T
	check checker
	free  func() // gives back the seat that makes the stream wait; nil: it finds a seat
	ends  string // how a wait ends
	stop  func() // its context

	started, bodied, ended, answering, answered bool // what weir was sent
	passing                                     bool // the body comes back as it comes
	wild                                        bool // Envoy never sends this
	log                                         []string
}

// FuzzStream plays any messages in any order, each mode, with and without a wait, memory, and a known cluster. Whatever
// comes: no panic, one outcome, and nothing is left. As long as it is what Envoy sends, every reply is one that Envoy
// takes, none is missing, and the stream does not fail.
//
// The first four bytes choose the circumstances, each byte after them a message.
func FuzzStream(f *testing.F) {
	for _, seed := range fuzzSeeds() {
		f.Add(seed)
	}
	b := newBench(f, extproc.Config{BodyLimit: 4000, BodyMemory: 8000})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= 4 && len(data) <= 200 {
			b.play(t, data)
		}
	})
}

// TestSeedsReachEverything holds that the seeds are worth their time: they reach every outcome but those that need a
// broken weir or a gate that knows its rates, and in each mode streams that Envoy itself could have sent.
func TestSeedsReachEverything(t *testing.T) {
	b := newBench(t, extproc.Config{BodyLimit: 4000, BodyMemory: 8000})
	seen, legal := map[route.Outcome]int{}, map[mode]int{}
	for _, seed := range fuzzSeeds() {
		z := b.play(t, seed)
		for _, d := range b.ended {
			seen[d.Outcome]++
		}
		if !z.wild {
			legal[z.check.mode]++
		}
	}
	for _, o := range route.Outcomes() {
		switch o {
		case route.Shed, route.Full, route.Stopped, route.CutHeld, route.NoReplica, route.Failed:
		default:
			if seen[o] == 0 {
				t.Errorf("no seed ends in %v", o)
			}
		}
	}
	for _, m := range append(modes, others...) {
		if legal[m] < 20 {
			t.Errorf("%s: %d seeds are what Envoy sends", m, legal[m])
		}
	}
}

// play plays one stream and holds what must hold of any.
func (b *bench) play(t *testing.T, data []byte) *fuzzed {
	t.Helper()
	b.ended = nil
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	z := &fuzzed{bench: b, t: t, stop: cancel}
	s := &script{ctx: ctx, next: z.next, sent: z.sent, asked: z.asked}
	s.messages = z.circumstances(data[:4], data[4:])
	if data[0]&8 != 0 {
		s.err = status.Error(codes.Canceled, "context canceled")
	}
	held := int64(0)
	if data[2]&1 != 0 {
		held = 7900
		b.Keep(held)
	}
	err := b.Process(s)
	b.Keep(-held)
	if z.free != nil {
		z.free()
	}
	if err != nil && !z.wild {
		t.Errorf("the stream fails: %v", err)
	}
	if n := len(b.ended); n > 1 || n == 1 != z.started {
		t.Errorf("%d outcomes, headers seen: %v", n, z.started)
	}
	for _, d := range b.ended {
		if d.Outcome == route.None || d.Outcome == route.Failed {
			t.Errorf("outcome %v", d.Outcome)
		}
	}
	b.checkIdle(t)
	if t.Failed() {
		t.Logf("%v", strings.Join(z.log, "\n"))
	}
	return z
}

// circumstances reads the first four bytes and makes the messages of the others.
func (z *fuzzed) circumstances(c, ops []byte) (all []*extprocv3.ProcessingRequest) {
	m := append(modes, others...)[int(c[0]&7)%5]
	z.check.mode = m
	tmpl := template(z.t, m)
	h := tmpl["request_headers"].GetRequestHeaders().Headers
	setHeader(h, ":path", []string{"/v1/chat/completions", "/v1/messages", "/rerank", "/v1/completions"}[c[1]&3])
	setHeader(h, "content-length", []string{"", "100", "3000", "5000"}[c[1]>>2&3])
	setHeader(h, "content-encoding", []string{"", "", "identity", "gzip"}[c[1]>>4&3])
	tunnel := c[1]>>6 == 3
	if tunnel {
		setHeader(h, "upgrade", "websocket")
		setHeader(h, "connection", "upgrade")
	}
	unknown := c[2]&6 == 6
	if unknown {
		setCluster(tmpl["request_headers"], "no-pool-of-weir")
	}
	z.passing = m == streamed && (tunnel || unknown)
	if z.ends = []string{"", "released", "cancelled", "late"}[c[3]&3]; z.ends != "" {
		z.free = z.fill()
	}
	text := strings.Repeat(chatBody, 50)
	for _, op := range ops {
		var r *extprocv3.ProcessingRequest
		switch end := op&8 != 0; op & 7 {
		case 0, 1:
			r = clone(tmpl["request_headers"])
			r.GetRequestHeaders().EndOfStream = end
		case 2, 3:
			n := min([]int{0, 1, 30, len(chatBody), 2000, 3999, 4000, 4001}[op>>4&7], len(text))
			r = piece(text[:n], end)
			text = text[n:]
		case 4:
			r = clone(tmpl["request_trailers"])
		case 5:
			r = clone(tmpl["response_headers"])
			r.GetResponseHeaders().EndOfStream = end
		case 6:
			r = &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{ResponseBody: &extprocv3.HttpBody{Body: []byte("data: x\n\n"), EndOfStream: end}}}
		case 7:
			if r = (&extprocv3.ProcessingRequest{}); !end {
				r.Request = &extprocv3.ProcessingRequest_ResponseTrailers{ResponseTrailers: &extprocv3.HttpTrailers{}}
			}
		}
		all = append(all, r)
	}
	return all
}

// next looks at what weir has done before it gets a message, and what that message is to Envoy.
func (z *fuzzed) next(m *extprocv3.ProcessingRequest) {
	z.settled()
	if m == nil {
		return
	}
	z.log = append(z.log, fmt.Sprintf("-> %.80v", m))
	z.wild = z.wild || !z.legal(m)
	z.started = z.started || m.GetRequestHeaders() != nil
	z.bodied = z.bodied || m.GetRequestBody() != nil
	z.ended = z.ended || m.GetRequestHeaders().GetEndOfStream() || m.GetRequestBody().GetEndOfStream() || m.GetRequestTrailers() != nil
	z.answering = z.answering || m.GetResponseHeaders() != nil
	z.answered = z.answered || m.GetResponseHeaders().GetEndOfStream() || m.GetResponseBody().GetEndOfStream() || m.GetResponseTrailers() != nil
	if z.passing && m.GetRequestTrailers() != nil {
		z.check.awaited = slices.DeleteFunc(z.check.awaited, func(kind string) bool { return kind == "request_body" }) // it came back
	}
	if !z.wild {
		z.check.sent(m)
	}
}

// settled wants every reply that is due.
func (z *fuzzed) settled() {
	if z.wild || z.check.refusal != nil || len(z.check.awaited) == 0 {
		return
	}
	switch body := len(z.check.awaited) == 1 && z.check.awaited[0] == "request_body"; {
	case z.passing && body && !z.ended:
		if string(z.check.echo) != string(z.check.sentBody) {
			z.t.Errorf("%d bytes of %d have passed", len(z.check.echo), len(z.check.sentBody))
		}
	case z.check.mode == streamed && !z.passing && !z.ended && !z.answering:
	default:
		z.t.Errorf("no reply to %v", z.check.awaited)
	}
}

// legal reports whether Envoy sends m now.
func (z *fuzzed) legal(m *extprocv3.ProcessingRequest) bool {
	open := z.started && !z.ended && !z.answering // the request side
	switch r := m.Request.(type) {
	case *extprocv3.ProcessingRequest_RequestHeaders:
		return !z.started && !z.answering
	case *extprocv3.ProcessingRequest_RequestBody:
		switch z.check.mode {
		case none:
			return false
		case buffered:
			return open && !z.bodied
		}
		return open
	case *extprocv3.ProcessingRequest_RequestTrailers:
		return open
	case *extprocv3.ProcessingRequest_ResponseHeaders:
		return !z.answering && len(z.check.awaited) == 0
	case *extprocv3.ProcessingRequest_ResponseBody:
		return z.answering && !z.answered && (len(r.ResponseBody.Body) > 0 || r.ResponseBody.EndOfStream)
	case *extprocv3.ProcessingRequest_ResponseTrailers:
		return z.answering && !z.answered
	}
	return false
}

// sent takes a reply.
func (z *fuzzed) sent(m *extprocv3.ProcessingResponse) error {
	z.log = append(z.log, fmt.Sprintf("<- %.80v", m))
	if err := z.check.got(m); err != nil && !z.wild {
		z.t.Errorf("Envoy refuses a reply: %v: %v", err, m)
	}
	return nil
}

// asked ends a wait.
func (z *fuzzed) asked() {
	held := 0
	for _, n := range z.router.Stats(time.Now()).Held {
		held += n
	}
	switch {
	case held == 0:
	case z.ends == "released" && z.free != nil:
		z.free()
		z.free = nil
	case z.ends == "" || z.ends == "released" && z.free == nil:
		z.t.Error("it is held, and a seat is free")
		z.stop()
	case z.ends == "cancelled":
		z.stop()
	case z.ends == "late":
		z.router.Release(time.Now().Add(time.Hour))
	}
}
