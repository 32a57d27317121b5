// Package extproc is the edge: the only package that knows Envoy's external-processing protocol. One goroutine
// and one state machine per stream; one timer per pool.
//
//	Envoy                        weir
//	request headers         ->   BUFFERED: go on. FULL_DUPLEX_STREAMED: nothing yet
//	request body            ->   the pick, once the body is complete
//	response headers        ->   go on
//	the stream ends         ->   the lease is released
//
// In BUFFERED_PARTIAL the first body message, a long body's beginning, brings the pick. In NONE and STREAMED the
// headers do, as a pick after them comes too late; so they do of an upgrade or CONNECT, whose body has no end.
//
// The processing mode arrives with the first message, so one binary serves every mode. weir never changes a
// byte of a body: BUFFERED replies carry no body at all, FULL_DUPLEX_STREAMED echoes what came.
package extproc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/weirproxy/weir/pkg/route"
	"github.com/weirproxy/weir/pkg/unpack"
)

// Config is what the edge is told.
type Config struct {
	// BodyLimit is the largest request body, in bytes, that weir takes. A larger one is answered 413. Envoy's
	// request_body_buffer_limit must not be larger, as in BUFFERED the whole body is one gRPC message.
	BodyLimit int `yaml:"body_limit"`
	// BodyMemory bounds the bytes of request bodies that weir keeps at once, over all streams. A body that would pass it
	// is answered 503. It is twice BodyLimit at least: a body is copied while it is parsed.
	BodyMemory int `yaml:"body_memory"`
	// Flow is where a request's tenant stands, who shares a class fairly with the others: header:NAME, for a header
	// that something before weir sets, or metadata:NAMESPACE:KEY. Empty: all requests are one flow.
	Flow string `yaml:"flow"`
	// ClassFrom is dynamic metadata that sets a request's class, such as a JWT's claim:
	// metadata:NAMESPACE:KEY. Empty: none does.
	ClassFrom string `yaml:"class_from"`
}

// Default takes bodies of 32 MiB: 8 million tokens of text, or some twenty inline images. It keeps 1.5 GiB of them: what
// the two default classes may hold, 512 MiB each, so that held bulk never keeps an interactive body out, and 512 MiB for
// those that arrive, sixteen of the largest.
func Default() Config { return Config{BodyLimit: 32 << 20, BodyMemory: 1536 << 20} }

const (
	// maxBodyLimit keeps BodyLimit and its slack inside a gRPC message's four-byte length.
	maxBodyLimit = 1 << 30
	// maxBodyMemory is 16 TiB, so that sums of such bounds stay far from the end of an int.
	maxBodyMemory = 1 << 44
)

// Validate returns every fault of c, joined; each begins with its key and a colon.
func (c Config) Validate() error {
	errs := []error{c.validateSources()}
	least, why := 2*c.BodyLimit, ", twice body_limit,"
	if c.BodyLimit < 1 || c.BodyLimit > maxBodyLimit {
		errs = append(errs, fmt.Errorf("body_limit: %d is not between 1 and %d bytes", c.BodyLimit, maxBodyLimit))
		least, why = 2, ""
	}
	switch {
	case c.BodyMemory < least && c.BodyMemory == Default().BodyMemory: // which nobody has to have set: body_limit is
		errs = append(errs, fmt.Errorf("body_limit: %d needs twice as much body_memory, %d at least, which is %d", c.BodyLimit, least, c.BodyMemory))
	case c.BodyMemory < least || c.BodyMemory > maxBodyMemory:
		errs = append(errs, fmt.Errorf("body_memory: %d is not between %d%s and %d bytes", c.BodyMemory, least, why, maxBodyMemory))
	}
	return errors.Join(errs...)
}

const (
	// messageSlack is what a body's gRPC message may hold beside the body.
	messageSlack = 1 << 20
	// keepaliveMin lets Envoy's connection_keepalive of one second through; grpc-go's own minimum of five
	// minutes kills live holds after a few pings.
	keepaliveMin = 100 * time.Millisecond
	// window is the flow-control window of a connection, and streamWindow that of a stream, which is what gRPC keeps of one
	// that weir does not read. A body of 10 MiB takes 3 to 5 % longer than with 4 MiB, and 16 to 25 with 256 KiB.
	window       = 4 << 20
	streamWindow = 1 << 20
	// noticeTime is how long a stopping server still serves while it reports NOT_SERVING, so that Envoy's health
	// check, three times 0.5 s in envoy/bootstrap.yaml, sends new requests past it before it stops listening.
	noticeTime = 2 * time.Second
	// drainTime is how long a stopping server waits for its streams: their answers go on without weir.
	drainTime = 5 * time.Second
	// lastCall is how long before the end of drainTime those that are still held are refused: time for their answers to
	// leave. Cut instead, they would go past the gate where Envoy fails open, and end in an error of Envoy's elsewhere.
	lastCall = time.Second
)

// Server is the ext_proc gRPC server over the routers of all pools.
type Server struct {
	extprocv3.UnimplementedExternalProcessorServer

	cfg    Config
	timers []Timer
	pools  map[string]*pool
	record func(*route.Decision)
	log    *slog.Logger
	health *health.Server

	draining chan struct{} // closed when Serve begins to drain
	stopping chan struct{} // closed lastCall before it ends that
	stopped  later         // what is left to do then
	cuts     cuts

	sources  atomic.Pointer[sources]
	memory   memory
	unpacker *unpack.Unpacker

	streams, events, early, panics atomic.Int64
	warnEarly, warnLarge           sync.Once
	warnedTLS                      atomic.Int64 // when, in Unix nanoseconds
}

// pool is one pool's router and the timer that serves its gate.
type pool struct {
	*route.Router
	wake chan struct{}
}

// NewServer returns a server that routes by routers, keyed by pool name, and calls record once for each request
// that ended, from the goroutine of its stream, or at the end of Serve. timers are those of the filters that call weir;
// without any, such as where the filters are not known, no hold counts as cut.
func NewServer(cfg Config, timers []Timer, routers map[string]*route.Router, record func(*route.Decision), log *slog.Logger) *Server {
	s := &Server{cfg: cfg, timers: timers, pools: map[string]*pool{}, record: record, log: log, health: health.NewServer(), draining: make(chan struct{}), stopping: make(chan struct{})}
	s.memory.limit = int64(cfg.BodyMemory)
	workers := max(runtime.GOMAXPROCS(0)/2, 1) // half of the processors are for what is not compressed
	s.unpacker = unpack.New(workers, cfg.BodyLimit, func(n int) bool { return s.memory.take(int64(n)) })
	s.Configure(cfg)
	for name, r := range routers {
		s.pools[name] = &pool{Router: r, wake: make(chan struct{}, 1)}
	}
	s.health.SetServingStatus(extprocv3.ExternalProcessor_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
	return s
}

// Configure takes Flow and ClassFrom of a validated cfg for the streams that begin from now on. BodyLimit and
// BodyMemory stay what they were: gRPC's receive limit goes by the one, and the other by that. Safe for concurrent use.
func (s *Server) Configure(cfg Config) {
	next := &sources{}
	next.flow, _ = parseSource(cfg.Flow) // Validate has passed
	next.classFrom, _ = parseSource(cfg.ClassFrom)
	s.sources.Store(next)
}

// Serve accepts on l until ctx ends, then reports NOT_SERVING, goes on for noticeTime, lets streams end for drainTime and
// cuts the rest. Held requests are released as before and refused lastCall before that. It is called once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	g := grpc.NewServer(
		grpc.Creds(plaintext{insecure.NewCredentials(), s.greetedByTLS}),
		grpc.MaxRecvMsgSize(s.cfg.BodyLimit+messageSlack),
		grpc.MaxConcurrentStreams(math.MaxUint32), // Envoy's breaker bounds them: a stream lives as long as its answer
		grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(window),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMin, PermitWithoutStream: true}),
	)
	extprocv3.RegisterExternalProcessorServer(g, s)
	healthv1.RegisterHealthServer(g, s.health)
	releasing, stop := context.WithCancel(context.WithoutCancel(ctx)) // held requests are decided during the drain too
	defer stop()
	for _, p := range s.pools {
		go p.release(releasing)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	s.health.Shutdown()
	notice := time.NewTimer(noticeTime)
	defer notice.Stop()
	select {
	case err := <-served:
		return err
	case <-notice.C:
	}
	close(s.draining)
	last := time.AfterFunc(drainTime-lastCall, func() { close(s.stopping) })
	defer last.Stop()
	cut := time.AfterFunc(drainTime, g.Stop)
	defer cut.Stop()
	defer s.stopped.run()
	g.GracefulStop()
	if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Wake has the held requests of a pool looked at again, after an event that Server does not see: a scrape.
func (s *Server) Wake(name string) {
	if p := s.pools[name]; p != nil {
		p.poke()
	}
}

func (p *pool) poke() {
	select {
	case p.wake <- struct{}{}:
	default: // a look is due already
	}
}

// release ends waits at every event and at the gate's own time, until ctx ends.
func (p *pool) release(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
		p.Release(time.Now())
		if next := p.Next(); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
	}
}

// Stats are the edge's own counters.
type Stats struct {
	Streams int64 // open now
	Early   int64 // ended within earlyEnd of an event stream's headers: leases came back too soon
	Panics  int64

	BodyBytes, BodyMemory int64 // of request bodies: kept now, and the bound
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	return Stats{
		Streams: s.streams.Load(), Early: s.early.Load(), Panics: s.panics.Load(),
		BodyBytes: s.memory.kept.Load(), BodyMemory: s.memory.limit,
	}
}
