package extproc_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"

	"github.com/weirproxy/weir/pkg/extproc"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
)

// script is a stream without gRPC: it gives its messages one by one, each once weir has done with the one before.
type script struct {
	grpc.ServerStream
	ctx      context.Context
	messages []*extprocv3.ProcessingRequest
	err      error                                       // that ends it; nil: io.EOF
	next     func(m *extprocv3.ProcessingRequest)        // before a message; nil: the end
	sent     func(m *extprocv3.ProcessingResponse) error // a reply
	asked    func()                                      // weir asks for the context, as it does when it waits
}

func (s *script) Context() context.Context {
	if s.asked != nil {
		s.asked()
	}
	return s.ctx
}

func (s *script) Recv() (*extprocv3.ProcessingRequest, error) {
	if len(s.messages) == 0 {
		if s.next != nil {
			s.next(nil)
		}
		if s.err != nil {
			return nil, s.err
		}
		return nil, io.EOF
	}
	m := s.messages[0]
	s.messages = s.messages[1:]
	if s.next != nil {
		s.next(m)
	}
	return m, nil
}

func (s *script) Send(m *extprocv3.ProcessingResponse) error {
	if s.sent != nil {
		return s.sent(m)
	}
	return nil
}

// bench is weir's edge and spine without gRPC and without timers: one replica with one seat.
type bench struct {
	*extproc.Server
	router *route.Router
	ended  []*route.Decision
}

func newBench(t testing.TB, cfg extproc.Config) *bench {
	t.Helper()
	poolCfg, ok := pool.Default(pool.DefaultProfile)
	if !ok {
		t.Fatal("no default profile")
	}
	poolCfg.Seats = 1
	b := &bench{router: route.New(route.Default(), pool.New("replicas", endpoints[:1], poolCfg))}
	record := func(d *route.Decision) { b.ended = append(b.ended, d) }
	b.Server = extproc.NewServer(cfg, nil, map[string]*route.Router{"replicas": b.router}, record, slog.New(slog.DiscardHandler))
	return b
}

// fill takes the one seat; the function that it returns gives it back.
func (b *bench) fill() (free func()) {
	d := b.router.Route(time.Now(), &route.Request{Path: "/v1/models"})
	return func() {
		b.router.Done(time.Now(), d, route.Answered)
		b.router.Release(time.Now())
	}
}

// checkIdle wants weir as it was before the stream.
func (b *bench) checkIdle(t testing.TB) {
	t.Helper()
	stats := b.router.Stats(time.Now())
	for class, n := range stats.Held {
		if n != 0 {
			t.Errorf("%d of class %s are held", n, class)
		}
	}
	for _, r := range stats.Replicas {
		if r.Leases != 0 || r.PendingTokens != 0 || r.IndexPinned != 0 {
			t.Errorf("the replica is not empty: %+v", r)
		}
	}
	if s := b.Server.Stats(); s.Streams != 0 || s.BodyBytes != 0 || s.Panics != 0 {
		t.Errorf("after the stream: %+v", s)
	}
}
