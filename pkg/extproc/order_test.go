package extproc_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/pkg/route"
)

// TestWrongMessages holds that messages out of order, twice or empty end the stream with an error, not with nil: in
// FULL_DUPLEX_STREAMED a nil before the echo would send the request on with no body (envoy#38553).
func TestWrongMessages(t *testing.T) {
	empty := &extprocv3.ProcessingRequest{}
	cases := map[string]struct {
		send func(c *call)
		ends route.Outcome // None: weir saw no request
	}{
		"empty first":           {func(c *call) { c.Send(empty) }, route.None},
		"body first":            {func(c *call) { c.Send(messageOf(100)) }, route.None},
		"trailers first":        {func(c *call) { c.Send(c.tmpl["request_trailers"]) }, route.None},
		"headers twice":         {func(c *call) { c.headers(false); c.Send(c.tmpl["request_headers"]) }, route.LeftBody},
		"headers after the end": {func(c *call) { c.request(chatBody); c.Send(c.tmpl["request_headers"]) }, route.Unanswered},
		"empty later":           {func(c *call) { c.headers(false); c.Send(empty) }, route.LeftBody},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			eachMode(t, options{}, func(f *fake, m mode) {
				c := f.call(m)
				tc.send(c)
				c.fails(codes.InvalidArgument)
				c.cancel()
				all := f.take()
				if tc.ends == route.None && len(all) > 0 || tc.ends != route.None && (len(all) != 1 || all[0].Outcome != tc.ends) {
					f.t.Errorf("outcomes %v", outcomes(all))
				}
			})
		})
	}
}

// TestAnswerWithoutARequest holds that an answer which Envoy, or a filter before weir, gives by itself goes its way: an
// error there would make a 401 a 500 where the filter fails closed.
func TestAnswerWithoutARequest(t *testing.T) {
	eachMode(t, options{}, func(f *fake, m mode) {
		c := f.call(m)
		c.Send(c.tmpl["response_headers"])
		r, err := c.Recv()
		if err != nil || r.GetResponseHeaders() == nil || r.GetDynamicMetadata() != nil {
			f.t.Errorf("reply %v, %v", r, err)
		}
		c.cancel()
		if all := f.take(); len(all) > 0 {
			f.t.Errorf("outcomes %v of no request", outcomes(all))
		}
	})
}

// TestAnswerWithoutARequestHasABody: in a response mode in which weir echoes the body, it does so for such an answer too. Envoy
// tells the modes with its first message only.
func TestAnswerWithoutARequestHasABody(t *testing.T) {
	withFake(t, options{}, func(f *fake) {
		c := f.call(streamed)
		first := c.tmpl["response_headers"]
		first.ProtocolConfig = proto.CloneOf(c.tmpl["request_headers"].ProtocolConfig)
		first.ProtocolConfig.ResponseBodyMode = filterv3.ProcessingMode_FULL_DUPLEX_STREAMED
		c.Send(first)
		c.Send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{ResponseBody: &extprocv3.HttpBody{Body: []byte("teapot"), EndOfStream: true}}})
		if r, err := c.Recv(); err != nil || r.GetResponseHeaders() == nil {
			f.t.Fatalf("reply %v, %v", r, err)
		}
		r, err := c.Recv()
		if said := r.GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse(); err != nil || string(said.GetBody()) != "teapot" || !said.GetEndOfStream() {
			f.t.Errorf("reply %v, %v", r, err)
		}
		c.cancel()
		f.take()
	})
}

// TestBodyAfterItsEnd holds the same for a body that goes on.
func TestBodyAfterItsEnd(t *testing.T) {
	withFake(t, options{}, func(f *fake) {
		c := f.call(streamed)
		c.request(chatBody)
		c.replies()
		c.body("more", true)
		c.fails(codes.InvalidArgument)
		f.take()
	})
}

// TestAnswerBeforeDecision holds that a local reply of Envoy's own, whose headers come before the body is whole, is
// answered and charges nobody.
func TestAnswerBeforeDecision(t *testing.T) {
	withFake(t, options{}, func(f *fake) {
		c := f.call(buffered)
		c.headers(false)
		c.replies()
		c.answer("413", "")
		c.close()
		if d := f.one(); d.Outcome != route.LeftBody {
			f.t.Errorf("outcome %v", d.Outcome)
		}
	})
}

// TestAnswerToWhatWasNotShown: of HTTP/2 headers and trailers with no body between them Envoy shows weir no body, and no trailers
// unless it is told to. A replica has them, without a pick.
func TestAnswerToWhatWasNotShown(t *testing.T) {
	withFake(t, options{}, func(f *fake) {
		for cluster, want := range map[string]route.Outcome{"replicas": route.NoBody, "no-pool-of-weir": route.NoPool} {
			c := f.call(buffered)
			setCluster(c.tmpl["request_headers"], cluster)
			c.headers(false)
			c.replies()
			c.answer("200", endpoints[0])
			c.close()
			if d := f.one(); d.Outcome != want || d.Served != route.Unknown {
				f.t.Errorf("%s: outcome %v, served %v", cluster, d.Outcome, d.Served)
			}
		}
	})
}

// TestTrailersWithoutBody holds that trailers where a body was announced end it.
func TestTrailersWithoutBody(t *testing.T) {
	eachMode(t, options{}, func(f *fake, m mode) {
		c := f.call(m)
		c.headers(false)
		if m == buffered {
			c.replies()
		}
		c.check.sentBody = nil
		c.send(c.tmpl["request_trailers"])
		c.replies()
		c.answer("200", endpoints[0])
		c.close()
		if d := f.one(); d.Outcome != route.Answered {
			f.t.Errorf("outcome %v", d.Outcome)
		}
	})
}

// TestShutdown holds the end of Serve: health says NOT_SERVING at once, new requests are served for the two seconds in
// which Envoy notices, streams have five seconds more, and then their leases are back. Nothing is left when Serve
// returns.
func TestShutdown(t *testing.T) {
	eachMode(t, options{seats: 1}, func(f *fake, m mode) {
		busy, _ := f.fill(m)
		health := healthv1.NewHealthClient(f.conn)
		for _, service := range []string{"", "envoy.service.ext_proc.v3.ExternalProcessor"} {
			r, err := health.Check(f.t.Context(), &healthv1.HealthCheckRequest{Service: service})
			if err != nil || r.Status != healthv1.HealthCheckResponse_SERVING {
				f.t.Errorf("health of %q: %v, %v", service, r, err)
			}
		}
		watch, err := health.Watch(f.t.Context(), &healthv1.HealthCheckRequest{})
		if err != nil {
			f.t.Fatal(err)
		}
		if _, err := watch.Recv(); err != nil {
			f.t.Fatal(err)
		}
		began := time.Now()
		go f.stop()
		if r, err := watch.Recv(); err != nil || r.Status != healthv1.HealthCheckResponse_NOT_SERVING || time.Since(began) != 0 {
			f.t.Errorf("health while it stops: %v, %v", r, err)
		}
		busy[0].close() // an answer that ends in time
		time.Sleep(1900 * time.Millisecond)
		late := f.call(m)
		late.request(chatBody)
		busy[1].close()
		late.replies()
		if late.check.pick == "" {
			f.t.Error("a request that came before Envoy has noticed gets no pick")
		}
		late.close()
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if n := f.Server.Stats().Streams; m == buffered && n < 3 {
			f.t.Errorf("%d streams while it drains, want those of the answers under way", n)
		} else if m == streamed && n >= 3 {
			f.t.Errorf("%d streams while it drains: the cut of those with an answer under way would cut the answer", n)
		}
		f.stop()
		if n := f.Server.Stats().Streams; n != 0 {
			f.t.Errorf("%d streams when Serve has returned", n)
		}
		if d := time.Since(began); d != 7*time.Second {
			f.t.Errorf("Serve returns after %v", d)
		}
		if n := outcomes(f.take()); n[route.Answered]+n[route.Unanswered]+n[route.LeftHeld] != 6 {
			f.t.Errorf("outcomes %v", n)
		}
	})
}

// TestShutdownBesideAnotherPool: the answer of a cluster that is not weir's is under way when weir stops; that is recorded,
// and so is every other, whatever goes wrong with one.
func TestShutdownBesideAnotherPool(t *testing.T) {
	faulty := func(d *route.Decision) {
		if d.Outcome == route.NoPool {
			panic("a fault of its own")
		}
	}
	eachMode(t, options{record: faulty}, func(f *fake, m mode) {
		for i := range 3 {
			c := f.call(m)
			if i < 2 {
				setCluster(c.tmpl["request_headers"], "no-pool-of-weir")
			}
			c.headers(true)
			c.replies()
			c.answer("200", endpoints[0])
		}
		f.stop()
		if n, panics := outcomes(f.take()), f.Server.Stats().Panics; n[route.NoPool] != 2 || n[route.Answered] != 1 || panics != 2 {
			f.t.Errorf("outcomes %v, %d panics", n, panics)
		}
	})
}

// faultyStream panics at the n-th message, received or sent.
type faultyStream struct {
	grpc.ServerStream
	n int
}

func (s *faultyStream) step() {
	if s.n--; s.n == 0 {
		panic("a fault that a test made")
	}
}

func (s *faultyStream) RecvMsg(m any) error { s.step(); return s.ServerStream.RecvMsg(m) }
func (s *faultyStream) SendMsg(m any) error { s.step(); return s.ServerStream.SendMsg(m) }

// faulty panics where the gRPC metadata test-panic says.
func faulty(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	md, _ := metadata.FromIncomingContext(ss.Context())
	n := 0 // never
	if at := md["test-panic"]; len(at) > 0 {
		n, _ = strconv.Atoi(at[0])
	}
	return next(srv, &faultyStream{ss, n})
}

// TestPanicEndsOneStream holds that a fault of weir's at any message ends its stream with an error, gives back what it
// holds, and leaves other streams alone.
func TestPanicEndsOneStream(t *testing.T) {
	eachMode(t, options{intercept: faulty}, func(f *fake, m mode) {
		other := f.call(m)
		other.headers(false)
		for at := 1; at <= 7; at++ { // four messages are received, the end included, and three sent
			c := f.call(m, "test-panic", strconv.Itoa(at))
			for _, r := range []*extprocv3.ProcessingRequest{c.tmpl["request_headers"], messageOf(100), c.tmpl["response_headers"]} {
				c.Send(r) // fails once weir has ended the stream
			}
			c.CloseSend()
			c.failsUnchecked(codes.Internal)
			if n := f.Server.Stats().Panics; n != int64(at) {
				f.t.Errorf("%d panics counted, want %d", n, at)
			}
			switch all := f.take(); {
			case at == 1 && len(all) != 0:
				f.t.Error("an outcome of a request that weir never saw")
			case at > 1 && (len(all) != 1 || all[0].Outcome != route.Failed):
				f.t.Errorf("panic at message %d: outcomes %v", at, outcomes(all))
			}
		}
		other.finish(chatBody)
		other.close()
		if d := f.one(); d.Outcome != route.Unanswered {
			f.t.Errorf("the other stream: %v", d.Outcome)
		}
	})
}

// TestPanicInRoute holds the same for the spine: with no class, which no valid policy has, it finds none for a request.
func TestPanicInRoute(t *testing.T) {
	eachMode(t, options{route: &route.Config{MaxHold: time.Minute}}, func(f *fake, m mode) {
		for n := range int64(3) {
			c := f.call(m)
			c.request(chatBody)
			c.failsUnchecked(codes.Internal)
			if d := f.one(); d.Outcome != route.Failed || f.Server.Stats().Panics != n+1 {
				f.t.Errorf("outcome %v, %d panics", d.Outcome, f.Server.Stats().Panics)
			}
		}
	})
}

// failsUnchecked is fails for a stream whose messages were sent without a wait.
func (c *call) failsUnchecked(code codes.Code) {
	c.f.t.Helper()
	var err error
	for err == nil {
		_, err = c.Recv()
	}
	if status.Code(err) != code {
		c.f.t.Errorf("the stream ends with %v, want %v", err, code)
	}
}

// TestPanicInRecord holds that a fault in what weir calls at a stream's end does not end the process.
func TestPanicInRecord(t *testing.T) {
	fault := true
	record := func(*route.Decision) {
		if fault {
			panic("a fault that a test made")
		}
	}
	withFake(t, options{record: record}, func(f *fake) {
		c := f.call(buffered)
		c.request(chatBody)
		c.replies()
		if err := c.CloseSend(); err != nil {
			f.t.Fatal(err)
		}
		c.fails(codes.Internal)
		if n := f.Server.Stats().Panics; n != 1 {
			f.t.Errorf("%d panics counted, want 1", n)
		}
		fault = false
		c = f.call(buffered)
		c.request(chatBody)
		c.replies()
		c.close()
		f.take()
	})
}
