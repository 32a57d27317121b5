package extproc

import (
	"errors"
	"strings"
	"time"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
	body      []byte // FULL_DUPLEX_STREAMED: what came so far, to be echoed
	client    bool   // the client sent a destination header: it is removed
	anthropic bool   // it sent the header of Anthropic's clients
	started   bool   // request headers were seen
	decision  *route.Decision
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
		st.mode = m.GetProtocolConfig() // Envoy, or a filter before weir, answers by itself: weir lets it
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
	if h.GetEndOfStream() {
		st.echoed = true
		return st.decide(nil, requestHeadersReply)
	}
	switch st.bodyMode() {
	case filterv3.ProcessingMode_FULL_DUPLEX_STREAMED:
		return nil // answered with the pick once the body is complete
	case filterv3.ProcessingMode_BUFFERED, filterv3.ProcessingMode_BUFFERED_PARTIAL:
		return st.rpc.Send(requestHeadersReply(st.passed()))
	}
	return st.decide(nil, requestHeadersReply) // NONE and STREAMED: a pick after the headers would come too late
}

func (st *stream) requestBody(b *extprocv3.HttpBody) error {
	if !st.duplex() {
		if st.decision != nil { // STREAMED, or what follows the prefix in BUFFERED_PARTIAL
			return st.rpc.Send(requestBodyReply(nil))
		}
		return st.decide(b.GetBody(), requestBodyReply)
	}
	if st.echoed {
		return status.Error(codes.InvalidArgument, "a request body came after its end")
	}
	if len(st.body)+len(b.GetBody()) > st.srv.cfg.BodyLimit {
		return st.tooLarge()
	}
	st.body = append(st.body, b.GetBody()...)
	if b.GetEndOfStream() {
		return st.answerDuplex(true)
	}
	return nil
}

// requestTrailers ends a body in FULL_DUPLEX_STREAMED, and follows it elsewhere.
func (st *stream) requestTrailers() error {
	switch {
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
	if err := st.decide(st.body, requestHeadersReply); err != nil || st.refused() {
		return err
	}
	body := st.body
	st.body = nil
	for {
		n := min(len(body), echoBytes)
		end := last && n == len(body)
		if n > 0 || end {
			if err := st.rpc.Send(echoReply(body[:n], end)); err != nil {
				return err
			}
		}
		if body = body[n:]; len(body) == 0 {
			return nil
		}
	}
}

// echoBytes is the size of an echoed chunk: what Envoy itself handles best is under 64 KiB.
const echoBytes = 62 << 10

// refused reports whether the request was answered by weir: nothing more may be sent for it.
func (st *stream) refused() bool {
	return st.decision.State == route.Refused && st.decision.Outcome != route.NoPool
}

// decide routes the request with its body, waits if it is held, and answers with the message that reply makes,
// or with a refusal.
func (st *stream) decide(body []byte, reply func(*pass) *extprocv3.ProcessingResponse) error {
	if st.decision != nil { // a second one would forget the first one's lease
		return status.Error(codes.InvalidArgument, "a request came to its end twice")
	}
	if len(body) > st.srv.cfg.BodyLimit {
		return st.tooLarge()
	}
	if st.pool == nil {
		st.decision = route.Unrouted(st.poolName, st.begun, route.NoPool)
		return st.rpc.Send(reply(st.passed()))
	}
	st.req.Body = body
	if st.duplex() {
		st.req.Kept = len(body) // to be echoed
	}
	d := st.pool.Route(time.Now(), &st.req)
	st.req.Body = nil
	st.decision = d
	if d.Ready() != nil {
		if err := st.wait(d); err != nil {
			return err
		}
	} else if d.Due {
		st.pool.poke()
	}
	if d.State == route.Refused {
		return st.rpc.Send(refusal(d, dialectOf(st.req.Path, st.anthropic)))
	}
	return st.rpc.Send(reply(st.passed()))
}

// wait parks a held request until it is decided or gone, or weir stops. Envoy's per-message timer is told once, where it
// has one: there is none in FULL_DUPLEX_STREAMED.
func (st *stream) wait(d *route.Decision) error {
	st.pool.Release(time.Now()) // those ahead of it wait for other replicas, perhaps
	st.pool.poke()              // the timer must learn of the next time
	select {
	case <-d.Ready():
		return nil
	default:
	}
	if !st.duplex() {
		if err := st.rpc.Send(holdReply(d.MaxHold() + holdSlack)); err != nil {
			return errGone
		}
	}
	select {
	case <-d.Ready():
		return nil
	case <-st.srv.stopping:
		if !st.pool.Dismiss(time.Now(), d) {
			<-d.Ready() // released in the same instant
		}
		return nil
	case <-st.rpc.Context().Done():
		if !st.duplex() {
			st.cut = st.srv.cutBy(time.Since(d.Arrived), d.MaxHold()+holdSlack)
		}
		return errGone
	}
}

// holdSlack is how much longer Envoy is told to wait than any hold lasts, so that the gate decides first.
const holdSlack = 5 * time.Second

// tooLarge answers 413: nothing is charged.
func (st *stream) tooLarge() error {
	st.body, st.echoed = nil, true
	st.decision = route.Unrouted(st.poolName, st.begun, route.TooLarge)
	return st.rpc.Send(refusal(st.decision, dialectOf(st.req.Path, st.anthropic)))
}

// passed is what goes back to Envoy with the reply that lets a request on.
func (st *stream) passed() *pass {
	return &pass{decision: st.decision, remove: st.client}
}

// responseHeaders notes who answered and how.
func (st *stream) responseHeaders(m *extprocv3.ProcessingRequest, h *extprocv3.HttpHeaders) error {
	if d := st.decision; d != nil && d.State == route.Picked {
		d.Status, d.Crowded = statusOf(h), header(h, "x-envoy-overloaded") != ""
		st.pool.Serve(time.Now(), d, attribute(m, "upstream.address"))
		if d.Status/100 == 2 && strings.HasPrefix(header(h, "content-type"), "text/event-stream") && !h.GetEndOfStream() {
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
