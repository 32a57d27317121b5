// Package admin is weir's HTTP listener for people and for Prometheus: metrics, health, readiness and the
// live state of every replica. Nothing that a client sends becomes a label: pools and endpoints are those of the
// start, classes those of every policy since, all else is a closed set.
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weirproxy/weir/pkg/route"
)

const (
	headerTimeout = 5 * time.Second
	// writeTimeout covers the whole answer: Prometheus gives up after 10 s by default.
	writeTimeout = 30 * time.Second
	idleTimeout  = 2 * time.Minute
	stopTimeout  = time.Second
	maxHeader    = 16 << 10
)

// Admin serves the admin listener and keeps the counts of ended requests.
type Admin struct {
	addr     string
	routers  []*route.Router
	log      *slog.Logger
	registry *prometheus.Registry
	vecs     *vecs
	requests atomic.Pointer[requests]
	ready    atomic.Bool
}

// New returns an admin for addr, host:port, over the routers. It is not ready until SetReady.
func New(addr string, routers []*route.Router, log *slog.Logger) *Admin {
	a := &Admin{addr: addr, routers: routers, log: log, registry: prometheus.NewRegistry()}
	a.vecs = newVecs(a.registry)
	a.requests.Store(newRequests(a.vecs, a.stats()))
	a.registry.MustRegister(
		replicas{a.stats}, learned{a.estimates}, knees{a.knees}, gates{a.gates}, buildInfo(),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return a
}

// stats is the routers' state now.
func (a *Admin) stats() []route.Stats { return each(a, (*route.Router).Stats) }

// estimates is what the routers have learned.
func (a *Admin) estimates() []route.Estimates { return each(a, (*route.Router).Estimates) }

// knees is where the routers' replicas stand to their knees.
func (a *Admin) knees() []route.Knee { return each(a, (*route.Router).Knee) }

// gates is the state of the routers' gates now, with so many of those that go next.
func (a *Admin) gates(heads int) []route.GateStats {
	return each(a, func(r *route.Router, now time.Time) route.GateStats { return r.GateStats(now, heads) })
}

// each asks every router for what it tells of itself now.
func each[T any](a *Admin, tell func(*route.Router, time.Time) T) []T {
	now := time.Now()
	all := make([]T, len(a.routers))
	for i, r := range a.routers {
		all[i] = tell(r, now)
	}
	return all
}

// SetReady tells whether weir takes requests: true when the ext_proc server listens, false when it drains.
func (a *Admin) SetReady(ready bool) { a.ready.Store(ready) }

// Classes makes the series of these classes, for each pool. It is called before the routers know them, by one
// goroutine at a time. A class that an earlier policy had keeps its series.
func (a *Admin) Classes(names []string) { a.requests.Store(a.requests.Load().with(a.vecs, names)) }

// Record counts a request that ended. It is called once for each, after its Done; safe for concurrent use. It
// allocates nothing.
func (a *Admin) Record(d *route.Decision) { a.requests.Load().record(d) }

// Run serves until ctx ends, and returns nil then. Any other end is an error, also when the address cannot be
// bound. ctx outlives the drain, so that readiness can be asked during it.
func (a *Admin) Run(ctx context.Context) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", a.addr)
	if err != nil {
		return fmt.Errorf("the policy's admin address: %w", err)
	}
	a.log.Info("admin listens", "address", ln.Addr().String())
	return a.serve(ctx, ln)
}

func (a *Admin) serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler: a.handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug), // a broken client is its own business
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := srv.Shutdown(stop); err != nil {
		err = srv.Close() // a slow reader does not hold the process
		<-ended
		return err
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
