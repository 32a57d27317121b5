package extproc_test

import (
	"context"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// mode is a request body mode, by the name that its recordings begin with where it has any.
type mode string

const (
	buffered mode = "buffered"
	streamed mode = "streamed" // FULL_DUPLEX_STREAMED
	partial  mode = "partial"  // BUFFERED_PARTIAL
	chunks   mode = "chunks"   // STREAMED
	none     mode = "none"
)

// modes are those that weir supports, others what a configuration may have too.
var modes, others = []mode{buffered, streamed}, []mode{partial, chunks, none}

var bodyModes = map[mode]filterv3.ProcessingMode_BodySendMode{
	buffered: filterv3.ProcessingMode_BUFFERED, streamed: filterv3.ProcessingMode_FULL_DUPLEX_STREAMED,
	partial: filterv3.ProcessingMode_BUFFERED_PARTIAL, chunks: filterv3.ProcessingMode_STREAMED, none: filterv3.ProcessingMode_NONE,
}

// template returns one of each message that Envoy sends, by kind.
func template(t testing.TB, m mode) map[string]*extprocv3.ProcessingRequest {
	t.Helper()
	tmpl, like := map[string]*extprocv3.ProcessingRequest{}, m
	if m != streamed {
		like = buffered
	}
	for _, r := range recording(t, newest, string(like)+"-events") {
		tmpl[kindOf(r)] = r
	}
	for _, r := range recording(t, newest, string(streamed)+"-h2-trailers") {
		if r.GetRequestTrailers() != nil {
			tmpl[kindOf(r)] = r
		}
	}
	tmpl["request_headers"].ProtocolConfig.RequestBodyMode = bodyModes[m]
	return tmpl
}

// call is one HTTP request that the fake Envoy has weir process.
type call struct {
	extprocv3.ExternalProcessor_ProcessClient
	f      *fake
	mode   mode
	ctx    context.Context
	cancel context.CancelFunc
	check  checker
	tmpl   map[string]*extprocv3.ProcessingRequest // recorded messages by kind
}

// call opens a stream. route is the gRPC metadata of the HTTP route, key and value by turns.
func (f *fake) call(m mode, route ...string) *call {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	rpc, err := f.client.Process(metadata.AppendToOutgoingContext(ctx, route...))
	if err != nil {
		f.t.Fatal(err)
	}
	return &call{ExternalProcessor_ProcessClient: rpc, f: f, mode: m, ctx: ctx, cancel: cancel, check: checker{mode: m}, tmpl: template(f.t, m)}
}

// send sends a message and tells the checker.
func (c *call) send(m *extprocv3.ProcessingRequest) {
	c.f.t.Helper()
	c.check.sent(m)
	if err := c.Send(m); err != nil {
		c.f.t.Fatalf("send: %v", err)
	}
}

// reply receives a message that must be what Envoy takes.
func (c *call) reply() *extprocv3.ProcessingResponse {
	c.f.t.Helper()
	m, err := c.Recv()
	if err != nil {
		c.f.t.Fatalf("weir ended the stream: %v", err)
	}
	if err := c.check.got(m); err != nil {
		c.f.t.Fatalf("Envoy refuses a reply: %v: %v", err, m)
	}
	return m
}

// fails receives until the stream ends, and wants that to be with a status of the code. What weir replied before must
// be what Envoy takes.
func (c *call) fails(code codes.Code) {
	c.f.t.Helper()
	for {
		m, err := c.Recv()
		if err == nil {
			err = c.check.got(m)
		} else if status.Code(err) == code {
			return
		}
		if err != nil {
			c.f.t.Fatalf("the stream ends with %v, want %v", err, code)
		}
	}
}

// replies receives until Envoy needs no more replies to go on.
func (c *call) replies() (last *extprocv3.ProcessingResponse) {
	c.f.t.Helper()
	for c.check.waits() {
		last = c.reply()
	}
	return last
}

// close ends the stream as Envoy does, and wants weir to end it without an error.
func (c *call) close() {
	c.f.t.Helper()
	if err := c.CloseSend(); err != nil {
		c.f.t.Fatal(err)
	}
	c.ends()
	c.cancel()
}

// ends receives until the stream is over.
func (c *call) ends() {
	c.f.t.Helper()
	if m, err := c.Recv(); m != nil || err.Error() != "EOF" {
		c.f.t.Errorf("at the stream's end: %v, %v", m, err)
	}
}

// headers sends the recorded request headers with others in their place, name and value by turns.
func (c *call) headers(end bool, others ...string) {
	c.f.t.Helper()
	m := c.tmpl["request_headers"]
	h := m.GetRequestHeaders()
	h.EndOfStream = end
	for ; len(others) > 0; others = others[2:] {
		setHeader(h.Headers, others[0], others[1])
	}
	c.send(m)
}

// setHeader replaces a header, or adds it: also a second one when the name begins with a plus.
func setHeader(h *corev3.HeaderMap, name, value string) {
	if name[0] != '+' {
		for _, v := range h.Headers {
			if v.Key == name {
				v.RawValue = []byte(value)
				return
			}
		}
	} else {
		name = name[1:]
	}
	h.Headers = append(h.Headers, &corev3.HeaderValue{Key: name, RawValue: []byte(value)})
}

// body sends a request body as one message.
func (c *call) body(text string, end bool) {
	c.f.t.Helper()
	c.send(&extprocv3.ProcessingRequest{
		Request:         &extprocv3.ProcessingRequest_RequestBody{RequestBody: &extprocv3.HttpBody{Body: []byte(text), EndOfStream: end}},
		MetadataContext: &corev3.Metadata{},
	})
}

// request sends headers and body as Envoy does: it waits for the answer to the headers in BUFFERED, and cuts the body
// in pieces in FULL_DUPLEX_STREAMED.
func (c *call) request(text string, headers ...string) {
	c.f.t.Helper()
	c.headers(false, headers...)
	if c.mode != streamed {
		c.replies()
		c.body(text, true)
		return
	}
	for n := len(text) / 3; len(text) > 0; {
		n = max(1, min(n, len(text)))
		c.body(text[:n], false)
		text = text[n:]
	}
	c.body("", true)
}

// answer sends the headers of the answer of the replica at an endpoint.
func (c *call) answer(status, endpoint string) {
	c.f.t.Helper()
	m := c.tmpl["response_headers"]
	setHeader(m.GetResponseHeaders().Headers, ":status", status)
	m.Attributes["envoy.filters.http.ext_proc"].Fields["upstream.address"] = structpb.NewStringValue(endpoint)
	c.send(m)
	c.replies()
}
