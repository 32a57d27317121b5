package admin

import (
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/pkg/route"
)

// Emit gives one series its value; labels are in the order in which they were named.
type Emit func(value float64, labels ...string)

// Gauges registers a gauge whose series f emits at each scrape of the metrics page. The set of label values
// is bounded by the caller. A name that is taken or is no metric name is a fault of the program: it panics.
func (a *Admin) Gauges(name, help string, labels []string, f func(Emit)) {
	a.registry.MustRegister(source{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue, f})
}

// Counters is Gauges for counters: values that only grow.
func (a *Admin) Counters(name, help string, labels []string, f func(Emit)) {
	a.registry.MustRegister(source{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue, f})
}

// source is a prometheus.Collector over a function.
type source struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	f    func(Emit)
}

func (s source) Describe(ch chan<- *prometheus.Desc) { ch <- s.desc }

func (s source) Collect(ch chan<- prometheus.Metric) {
	s.f(func(v float64, labels ...string) { ch <- metric(s.desc, s.kind, v, labels...) })
}

// metric is a value, or what the page's error log says in its place.
func metric(desc *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) prometheus.Metric {
	m, err := prometheus.NewConstMetric(desc, kind, v, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return m
}

// replicas is a prometheus.Collector of the routers' live state.
type replicas struct {
	stats func() []route.Stats
}

func poolDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("weir_pool_"+name, help, []string{"pool"}, nil)
}

func replicaDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("weir_replica_"+name, help, []string{"pool", "endpoint"}, nil)
}

var (
	allDesc    = poolDesc("replicas", "Replicas of the pool.")
	usableDesc = poolDesc("usable_replicas", "Replicas of the pool that do not fail, as far as weir knows.")

	leasesDesc  = replicaDesc("leases", "Requests that weir sent to the replica and that have not ended.")
	pendingDesc = replicaDesc("pending_tokens", "Tokens ahead of a new request: uncached prompt tokens not yet drained, and expected answers.")
	waitDesc    = replicaDesc("wait_seconds", "Estimated time until the replica has drained its uncached prompt tokens.")
	kvDesc      = replicaDesc("kv", "Share of usable KV cache in use, 0 to 1; above 1 where what was sent is overestimated.")
	belowDesc   = replicaDesc("below_knee", "1 while the replica is below its knee, else 0. It says nothing of failures: weir_replica_down.")
	downDesc    = replicaDesc("down", "1 while the replica fails and is picked only if all do, else 0.")
	ageDesc     = replicaDesc("scrape_age_seconds", "Age of the last scrape that succeeded; absent before the first.")
	staleDesc   = replicaDesc("scrape_stale", "1 while the replica's own gauges are not believed: too old, or never read.")
)

func (replicas) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{allDesc, usableDesc, leasesDesc, pendingDesc, waitDesc, kvDesc, belowDesc, downDesc, ageDesc, staleDesc} {
		ch <- d
	}
}

func (c replicas) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.stats() {
		n, _ := usable(s)
		ch <- metric(allDesc, prometheus.GaugeValue, float64(len(s.Replicas)), s.Pool)
		ch <- metric(usableDesc, prometheus.GaugeValue, float64(n), s.Pool)
		for _, r := range s.Replicas {
			gauge := func(d *prometheus.Desc, v float64) { ch <- metric(d, prometheus.GaugeValue, v, s.Pool, r.Endpoint) }
			gauge(leasesDesc, float64(r.Leases))
			gauge(pendingDesc, r.PendingTokens)
			gauge(waitDesc, r.WaitSeconds)
			gauge(kvDesc, r.KV)
			gauge(belowDesc, flag(r.Below))
			gauge(downDesc, flag(r.Down))
			gauge(staleDesc, flag(r.Scrape == nil || r.Scrape.Stale))
			if r.Scrape != nil {
				gauge(ageDesc, r.Scrape.AgeSeconds)
			}
		}
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// buildInfo is 1, with the module version that the Go toolchain stamped into the binary.
func buildInfo() prometheus.Collector {
	version := unknown
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: "1, with weir's version.", ConstLabels: prometheus.Labels{"version": version},
	})
	g.Set(1)
	return g
}
