package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirproxy/weir/pkg/admin"
	"github.com/weirproxy/weir/pkg/bootstrap"
	"github.com/weirproxy/weir/pkg/extproc"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
	"github.com/weirproxy/weir/pkg/scrape"
)

// weir is a weir that serves: its stages, and what reloads their policy.
type weir struct {
	files  bootstrap.Files
	policy *bootstrap.Bootstrap // in force
	watch  *watch
	hangup <-chan os.Signal
	log    *slog.Logger

	routers map[string]*route.Router // by pool
	adm     *admin.Admin
	edge    *extproc.Server
	scraper *scrape.Scraper

	ok, unchanged, refused atomic.Int64 // reloads
	loaded                 atomic.Int64 // when the policy came into force, in Unix nanoseconds
}

// newWeir wires the stages in the order of a request.
func newWeir(files bootstrap.Files, b *bootstrap.Bootstrap, watch *watch, hangup <-chan os.Signal, log *slog.Logger) *weir {
	w := &weir{files: files, policy: b, watch: watch, hangup: hangup, log: log, routers: map[string]*route.Router{}}
	var all []*route.Router
	for _, p := range b.Pools {
		one := route.New(b.Policy.Route, pool.New(p.Name, p.Endpoints, b.Policy.Replica))
		w.routers[p.Name], all = one, append(all, one)
		log.Info("pool", "name", p.Name, "endpoints", p.Endpoints)
	}
	w.loaded.Store(time.Now().UnixNano())
	w.adm = admin.New(b.Policy.Admin, all, log)
	w.edge = extproc.NewServer(b.Policy.Edge, b.Timers, w.routers, w.adm.Record, log)
	w.scraper = scrape.New(scrape.Interval, targets(b.Pools, w.routers, w.edge), log)
	count(w.adm, w.edge, w.scraper)
	w.count()
	return w
}

// serve runs the stages until ctx ends: then the edge drains, and scraping and the admin listener stay up until it has.
// It returns nil after a stop, else what failed. What weir check calls an error in the file is logged and no reason not
// to start: its operator may know better.
func (w *weir) serve(ctx context.Context) error {
	b, log := w.policy, w.log
	var wrong []error
	for _, one := range b.Errors {
		wrong = append(wrong, errors.New(one.String()))
	}
	w.logFaults("weir check calls this an error, and weir serves all the same", wrong)
	l, err := listen(ctx, b.Listen)
	if err != nil {
		return fmt.Errorf("weir's ext_proc address: %w", err)
	}
	log.Info("weir listens", "network", b.Listen.Network, "address", b.Listen.Address)
	w.adm.SetReady(true)
	rest, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		<-ctx.Done()
		w.adm.SetReady(false)
		log.Info("stopping: requests under way go on, new ones are served until Envoy has noticed")
		return nil
	})
	group.Go(func() error {
		w.reloads(ctx)
		return nil
	})
	group.Go(func() error { return w.adm.Run(rest) })
	group.Go(func() error { return w.scraper.Run(rest) })
	group.Go(func() error {
		defer stop()
		return w.edge.Serve(ctx, l)
	})
	return group.Wait()
}

// targets are the replicas to scrape. A sample may let a held request go, so that each wakes its pool's gate.
func targets(pools []bootstrap.Pool, routers map[string]*route.Router, edge *extproc.Server) []scrape.Target {
	var all []scrape.Target
	for _, p := range pools {
		r := routers[p.Name]
		for _, endpoint := range p.Endpoints {
			all = append(all, scrape.Target{
				Pool: p.Name, Endpoint: endpoint,
				Observe: func(now time.Time, s pool.Sample) {
					r.Observe(now, endpoint, s)
					edge.Wake(p.Name)
				},
				Refused: func(now time.Time) {
					r.Refuse(now, endpoint)
					edge.Wake(p.Name)
				},
			})
		}
	}
	return all
}

// count puts the counters of the edge and of the scraper on the metrics page.
func count(adm *admin.Admin, edge *extproc.Server, scraper *scrape.Scraper) {
	adm.Gauges("weir_streams", "ext_proc streams open now.", nil, func(emit admin.Emit) {
		emit(float64(edge.Stats().Streams))
	})
	adm.Counters("weir_streams_early_total", "Streams that ended right after the headers of an event stream: leases came back too soon.", nil, func(emit admin.Emit) {
		emit(float64(edge.Stats().Early))
	})
	adm.Counters("weir_panics_total", "Streams that a fault of weir's own ended.", nil, func(emit admin.Emit) {
		emit(float64(edge.Stats().Panics))
	})
	adm.Gauges("weir_body_bytes", "Bytes of request bodies that weir keeps now.", nil, func(emit admin.Emit) {
		emit(float64(edge.Stats().BodyBytes))
	})
	adm.Gauges("weir_body_bytes_limit", "What weir_body_bytes may be, body_memory: a body beyond it is refused, outcome no_memory.", nil, func(emit admin.Emit) {
		emit(float64(edge.Stats().BodyMemory))
	})
	replica := []string{"pool", "endpoint"}
	adm.Counters("weir_scrapes_total", "Scrapes of a replica's metrics that ended, failures included.", replica, func(emit admin.Emit) {
		for _, s := range scraper.Stats() {
			emit(float64(s.Scrapes), s.Pool, s.Endpoint)
		}
	})
	adm.Counters("weir_scrape_failures_total", "Scrapes of a replica's metrics that failed.", replica, func(emit admin.Emit) {
		for _, s := range scraper.Stats() {
			emit(float64(s.Failures), s.Pool, s.Endpoint)
		}
	})
}
