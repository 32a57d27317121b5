package extproc

import (
	"errors"
	"strings"
	"time"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirproxy/weir/pkg/prompt"
	"github.com/weirproxy/weir/pkg/route"
)

// stream is one ext_proc stream: one HTTP request, and its state between messages.
type stream struct {
	srv  *Server
	rpc  extprocv3.ExternalProcessor_ProcessServer
	mode *extprocv3.ProtocolConfiguration

	begun     time.Time
	pool      *pool // nil: weir does not know the cluster
	poolName  string
	req       route.Request
	body      body   // FULL_DUPLEX_STREAMED: what came so far, to be echoed
	kept      int64  // bytes that it has taken of the server's memory
	length    int64  // content-length; -1: none that can be believed
	encoding  string // content-encoding
	client    bool   // the client sent a destination header: it is removed
	anthropic bool   // it sent the header of Anthropic's clients
	tunnel    bool   // it asked for another protocol, or for CONNECT: the body has no end
	started   bool   // request headers were seen
	decision  *route.Decision
	passing   bool      // FULL_DUPLEX_STREAMED: decided at the headers, the body is echoed as it comes
	echoed    bool      // FULL_DUPLEX_STREAMED: the request side is answered
	answering bool      // the response headers are on their way to the client
	cut       *Timer    // ended the hold, as Envoy ignored the override; nil: none did
	left      bool      // weir has ended the stream, and the answer goes on
	events    time.Time // when the headers of a 2xx event stream came
}

// errGone ends a stream whose client left, or which Envoy gave up, while it was held.
var errGone = errors.New("stream is gone")

// Process serves one stream. It returns nil at every ordinary end, and an error only for a protocol fault or a
// fault of weir's own: in FULL_DUPLEX_STREAMED a nil before the echo would send the request on with no body.
func (s *Server) Process(rpc extprocv3.ExternalProcessor_ProcessServer) (err error) {
	s.streams.Add(1)
	st := &stream{srv: s, rpc: rpc, begun: time.Now()}
	defer s.streams.Add(-1)
	defer st.end(&err)
	for {
		m, err := st.receive()
		if err != nil {
			st.received(err)
			return nil // io.EOF or Canceled, at random: Envoy ends its streams either way
		}
		if err := st.handle(m); err != nil {
			if errors.Is(err, errGone) || rpc.Context().Err() != nil {
				return nil
			}
			return err
		}
	}
}

func (st *stream) handle(m *extprocv3.ProcessingRequest) error {
	if h := m.GetRequestHeaders(); h != nil {
		return st.requestHeaders(m, h)
	}
	if !st.started {
		if m.GetRequestBody() != nil || m.GetRequestTrailers() != nil {
			return status.Error(codes.InvalidArgument, "the first message is not the request headers: set request_header_mode: SEND")
		}
		if st.mode == nil { // it comes with the first message
			st.mode = m.GetProtocolConfig() // Envoy, or a filter before weir, answers by itself: weir lets it
		}
	}
	if st.decision != nil && st.refused() {
		return nil // what Envoy sent before it had the refusal
	}
	switch r := m.Request.(type) {
	case *extprocv3.ProcessingRequest_RequestBody:
		return st.requestBody(r.RequestBody)
	case *extprocv3.ProcessingRequest_RequestTrailers:
		return st.requestTrailers()
	case *extprocv3.ProcessingRequest_ResponseHeaders:
		return st.responseHeaders(m, r.ResponseHeaders)
	case *extprocv3.ProcessingRequest_ResponseBody:
		return st.responseBody(r.ResponseBody)
	case *extprocv3.ProcessingRequest_ResponseTrailers:
		return st.rpc.Send(responseTrailersReply())
	}
	return status.Errorf(codes.InvalidArgument, "unexpected message %T", m.Request)
}

func (st *stream) bodyMode() filterv3.ProcessingMode_BodySendMode {
	return st.mode.GetRequestBodyMode()
}

func (st *stream) duplex() bool {
	return st.bodyMode() == filterv3.ProcessingMode_FULL_DUPLEX_STREAMED
}

// requestHeaders takes what the headers tell. A request without a body, or whose body weir is not sent in time,
// is decided here.
func (st *stream) requestHeaders(m *extprocv3.ProcessingRequest, h *extprocv3.HttpHeaders) error {
	if st.started {
		return status.Error(codes.InvalidArgument, "request headers came twice")
	}
	st.started = true
	st.mode = m.GetProtocolConfig()
	st.readHeaders(m, h)
	switch {
	case h.GetEndOfStream():
		st.echoed = true
		return st.decide(nil, requestHeadersReply)
	case st.tunnel || !st.shown():
		return st.decideUnseen()
	case st.pool == nil && st.duplex():
		st.passing = true // nothing is to be decided
		return st.decide(nil, requestHeadersReply)
	case st.pool != nil && st.whole() && st.length > int64(st.srv.cfg.BodyLimit):
		return st.refuse(route.TooLarge)
	case st.pool != nil && st.whole() && !st.srv.memory.fits(st.length):
		return st.refuse(route.NoMemory)
	case st.duplex():
		return nil // answered with the pick once the body is complete
	}
	return st.rpc.Send(requestHeadersReply(st.passed()))
}

// shown reports whether the mode shows weir the body before Envoy needs the pick: in NONE and STREAMED one after
// the headers comes too late.
func (st *stream) shown() bool {
	return st.duplex() || st.whole() || st.bodyMode() == filterv3.ProcessingMode_BUFFERED_PARTIAL
}

// whole reports whether weir is to see the whole body.
func (st *stream) whole() bool {
	return st.duplex() || st.bodyMode() == filterv3.ProcessingMode_BUFFERED
}

// decideUnseen decides at the headers, by what they tell of the size. In BUFFERED and BUFFERED_PARTIAL Envoy sends
// nothing on before the end of a body, which a tunnel has none of: whoever asks for one would hang.
func (st *stream) decideUnseen() error {
	switch st.bodyMode() {
	case filterv3.ProcessingMode_BUFFERED, filterv3.ProcessingMode_BUFFERED_PARTIAL:
		return st.refuse(route.Tunnel)
	case filterv3.ProcessingMode_FULL_DUPLEX_STREAMED:
		st.passing = true
		st.req.Kept = min(streamWindow, st.srv.cfg.BodyLimit)
		if st.pool != nil && !st.take(int64(st.req.Kept)) {
			return st.refuse(route.NoMemory)
		}
	}
	st.req.Unread, st.req.Size = prompt.ReasonMode, st.length
	if st.length < 0 {
		st.req.Size = unknownSize
	}
	err := st.decide(nil, requestHeadersReply)
	st.drop() // its bytes pass from now on
	return err
}

// unknownSize, in bytes, is what a body of unknown size counts as: 1,024 tokens. Not measured: nothing would make a replica of
// long prompts look idle.
const unknownSize = 4 << 10

func (st *stream) requestBody(b *extprocv3.HttpBody) error {
	switch {
	case st.duplex() && st.echoed:
		return status.Error(codes.InvalidArgument, "a request body came after its end")
	case st.passing:
		st.echoed = b.GetEndOfStream()
		if len(b.GetBody()) == 0 && !st.echoed {
			return nil
		}
		return st.rpc.Send(echoReply(b.GetBody(), st.echoed))
	case st.duplex():
		return st.collect(b)
	case st.decision != nil: // NONE and STREAMED, or what follows the prefix in BUFFERED_PARTIAL
		return st.rpc.Send(requestBodyReply(nil))
	}
	return st.decideBody(b)
}

// collect keeps a piece of the body in FULL_DUPLEX_STREAMED, and decides at its end.
func (st *stream) collect(b *extprocv3.HttpBody) error {
	n := len(b.GetBody())
	switch {
	case st.body.size+n > st.srv.cfg.BodyLimit:
		return st.refuse(route.TooLarge)
	case !st.take(int64(n)):
		return st.refuse(route.NoMemory)
	}
	st.body.add(b.GetBody())
	if b.GetEndOfStream() {
		return st.answerDuplex(true)
	}
	return nil
}

// decideBody decides on the one message of BUFFERED, or the first of BUFFERED_PARTIAL. Envoy keeps the body: weir drops
// it before any hold. In BUFFERED_PARTIAL nothing says that a body is cut but a Content-Length that is larger or, in
// chunks, the missing end. In BUFFERED trailers take the end away.
func (st *stream) decideBody(b *extprocv3.HttpBody) error {
	text := b.GetBody()
	b.Body = nil
	if st.pool != nil && !st.take(int64(len(text))) { // what is not weir's passes
		return st.refuse(route.NoMemory)
	}
	if st.bodyMode() == filterv3.ProcessingMode_BUFFERED_PARTIAL {
		st.req.Partial = st.length > int64(len(text)) || st.length < 0 && !b.GetEndOfStream()
		st.req.Size = st.length
	}
	st.route(text)
	st.drop()
	return st.settle(requestBodyReply)
}

// requestTrailers ends a body in FULL_DUPLEX_STREAMED, and follows it elsewhere.
func (st *stream) requestTrailers() error {
	switch {
	case st.passing:
		st.echoed = true
	case st.duplex() && !st.echoed:
		if err := st.answerDuplex(false); err != nil || st.refused() {
			return err
		}
	case st.decision == nil: // headers said that a body follows, and none came
		return st.decide(nil, requestTrailersReply)
	}
	return st.rpc.Send(requestTrailersReply(nil))
}

// answerDuplex decides on the whole body and sends the header reply and the echo, in that order: the other
// order is spurious to Envoy. last says that no trailers follow.
func (st *stream) answerDuplex(last bool) error {
	st.echoed = true
	if !st.routePieces() {
		return st.refuse(route.NoMemory)
	}
	if err := st.settle(requestHeadersReply); err != nil || st.refused() {
		return err
	}
	return st.echo(last)
}

// responseHeaders notes who answered and how. A replica that answers what was not decided got headers and trailers of
// HTTP/2 with nothing in between, of which Envoy shows weir no body.
func (st *stream) responseHeaders(m *extprocv3.ProcessingRequest, h *extprocv3.HttpHeaders) error {
	if st.started && st.decision == nil && attribute(m, "upstream.address") != "" {
		outcome := route.NoBody
		if st.pool == nil {
			outcome = route.NoPool
		}
		st.decision = route.Unrouted(st.poolName, st.begun, outcome)
	}
	if d := st.decision; d != nil && d.State == route.Picked {
		d.Status, d.Crowded = statusOf(h), header(h, "x-envoy-overloaded") != ""
		st.pool.Serve(time.Now(), d, attribute(m, "upstream.address"))
		if d.Status/100 == 2 && strings.HasPrefix(strings.ToLower(header(h, "content-type")), "text/event-stream") && !h.GetEndOfStream() {
			st.events, d.Events = time.Now(), true
		}
	}
	st.answering = true
	return st.rpc.Send(responseHeadersReply())
}

// responseBody answers a response body that a configuration sends though weir never asks for one.
func (st *stream) responseBody(b *extprocv3.HttpBody) error {
	if st.mode.GetResponseBodyMode() == filterv3.ProcessingMode_FULL_DUPLEX_STREAMED {
		return st.rpc.Send(responseEcho(b.GetBody(), b.GetEndOfStream()))
	}
	return st.rpc.Send(responseBodyReply())
}
