package extproc_test

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/weirproxy/weir/pkg/extproc"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
)

// endpoints are the replicas of the pool "replicas", the cluster of the recordings.
var endpoints = []string{"127.0.0.1:8001", "127.0.0.1:8002", "127.0.0.1:8003", "127.0.0.1:8004"}

// options are what a fake differs in from test to test. Zero fields are weir's defaults.
type options struct {
	limit     int                          // of the body, bytes
	memory    int                          // of all bodies, bytes
	seats     int                          // requests at once per replica
	held      int                          // requests held at most
	heldBytes int                          // bytes of their bodies at most
	none      bool                         // no replicas
	timers    []extproc.Timer              // of Envoy; none: not known
	flow      string                       // where a tenant stands
	classFrom string                       // where a trusted class stands
	record    func(*route.Decision)        // called before the fake's own
	log       *slog.Logger                 // of weir; nil: nobody reads it
	route     *route.Config                // instead of the default
	intercept grpc.StreamServerInterceptor // between gRPC and weir: needs own
}

// fake is an Envoy in front of weir's edge and spine, over an in-memory connection. It lives in a synctest bubble:
// holds and deadlines take no real time, and synctest.Wait tells when weir has done all that it will do.
type fake struct {
	*extproc.Server
	t      *testing.T
	router *route.Router
	client extprocv3.ExternalProcessorClient
	conn   *grpc.ClientConn
	stop   func() // ends weir, and waits for it

	mu    sync.Mutex
	ended []*route.Decision
}

// withFake runs a test with a fake in a bubble, and holds afterwards that weir is empty.
func withFake(t *testing.T, o options, test func(f *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, o)
		defer f.close()
		test(f)
		f.checkEmpty()
	})
}

func newFake(t *testing.T, o options) *fake {
	t.Helper()
	f := &fake{t: t}
	poolCfg, ok := pool.Default(pool.DefaultProfile)
	if !ok {
		t.Fatal("no default profile")
	}
	cfg, routeCfg, replicas := extproc.Default(), route.Default(), endpoints
	if o.seats > 0 {
		poolCfg.Seats = o.seats
	}
	if o.limit > 0 {
		cfg.BodyLimit = o.limit
	}
	if o.memory > 0 {
		cfg.BodyMemory = o.memory
	}
	if o.held > 0 {
		for i := range routeCfg.Classes {
			routeCfg.Classes[i].MaxHeld = o.held
		}
	}
	if o.heldBytes > 0 {
		routeCfg.Classes[0].MaxHeldBytes = o.heldBytes
	}
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	if o.route != nil {
		routeCfg = *o.route
	}
	cfg.Flow, cfg.ClassFrom = o.flow, o.classFrom
	if o.none {
		replicas = nil
	}
	f.router = route.New(routeCfg, pool.New("replicas", replicas, poolCfg))
	record := func(d *route.Decision) {
		f.mu.Lock()
		f.ended = append(f.ended, d)
		f.mu.Unlock()
		if o.record != nil {
			o.record(d)
		}
	}
	f.Server = extproc.NewServer(cfg, o.timers, map[string]*route.Router{"replicas": f.router}, record, o.log)
	f.serve(o.intercept)
	return f
}

// serve starts weir as it serves Envoy, or with an interceptor on a gRPC server of the fake's own.
func (f *fake) serve(intercept grpc.StreamServerInterceptor) {
	l := bufconn.Listen(1 << 20)
	ctx, cancel := context.WithCancel(f.t.Context())
	stopped := make(chan struct{})
	f.stop = func() {
		cancel()
		<-stopped
	}
	serve := func(end func() error) {
		defer close(stopped)
		if err := end(); err != nil {
			f.t.Errorf("Serve: %v", err)
		}
	}
	if intercept == nil {
		go serve(func() error { return f.Server.Serve(ctx, l) })
	} else {
		g := grpc.NewServer(grpc.StreamInterceptor(intercept))
		extprocv3.RegisterExternalProcessorServer(g, f.Server)
		go f.release(ctx, g)
		go serve(func() error { return g.Serve(l) })
	}
	conn, err := grpc.NewClient("passthrough:weir",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		f.t.Fatal(err)
	}
	f.conn, f.client = conn, extprocv3.NewExternalProcessorClient(conn)
}

// release does what Serve does beside gRPC: it ends waits, and it stops.
func (f *fake) release(ctx context.Context, g *grpc.Server) {
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			g.Stop()
			return
		case now := <-tick.C:
			f.router.Release(now)
		}
	}
}

func (f *fake) close() {
	f.conn.Close()
	f.stop()
}

// take returns the requests that ended since the last call.
func (f *fake) take() []*route.Decision {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.ended
	f.ended = nil
	return all
}

// one returns the one request that ended since the last call.
func (f *fake) one() *route.Decision {
	f.t.Helper()
	all := f.take()
	if len(all) != 1 {
		f.t.Fatalf("%d requests ended, want 1", len(all))
	}
	return all[0]
}

// checkEmpty holds that no stream, lease, held request, token, pinned block or byte of a body is left.
func (f *fake) checkEmpty() {
	f.t.Helper()
	synctest.Wait()
	if s := f.Server.Stats(); s.Streams != 0 || s.BodyBytes != 0 {
		f.t.Errorf("%d streams are open, and %d bytes of bodies are kept", s.Streams, s.BodyBytes)
	}
	s := f.router.Stats(time.Now())
	for class, n := range s.Held {
		if n != 0 {
			f.t.Errorf("%d of class %s are held", n, class)
		}
	}
	for _, r := range s.Replicas {
		if r.Leases != 0 || r.PendingTokens != 0 || r.BacklogTokens != 0 || r.IndexPinned != 0 || r.KV != 0 {
			f.t.Errorf("%s is not empty: %+v", r.Endpoint, r)
		}
	}
}

// leases returns the live leases of each replica, in the order of endpoints.
func (f *fake) leases() (n []int) {
	synctest.Wait()
	for _, r := range f.router.Stats(time.Now()).Replicas {
		n = append(n, r.Leases)
	}
	return n
}

func (f *fake) held() (n int) {
	synctest.Wait()
	for _, h := range f.router.Stats(time.Now()).Held {
		n += h
	}
	return n
}

// outcomes counts the outcomes of decisions.
func outcomes(all []*route.Decision) map[route.Outcome]int {
	n := map[route.Outcome]int{}
	for _, d := range all {
		n[d.Outcome]++
	}
	return n
}

func sum(n []int) (total int) {
	for _, v := range n {
		total += v
	}
	return total
}
