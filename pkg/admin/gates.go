package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/pkg/route"
)

// gates is a prometheus.Collector of the routers' gates, by class.
type gates struct {
	stats func(heads int) []route.GateStats
}

func gateDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("weir_"+name, help, []string{"pool", "class"}, nil)
}

var (
	heldDesc       = gateDesc("held", "Requests held at the gate.")
	heldTokensDesc = gateDesc("held_tokens", "Prompt and expected answer tokens of the requests held at the gate.")
	heldBytesDesc  = gateDesc("held_bytes", "Bytes of their bodies that weir keeps.")
	drainDesc      = gateDesc("gate_drain_tokens_per_second", "Tokens admitted per second while requests of the class were held, averaged over a quarter of its deadline; 0 until 20 were.")
	owedDesc       = gateDesc("gate_owed_tokens", "Tokens that the class is owed of its share; negative: what it had beyond it.")
)

func (gates) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{heldDesc, heldTokensDesc, heldBytesDesc, drainDesc, owedDesc} {
		ch <- d
	}
}

func (g gates) Collect(ch chan<- prometheus.Metric) {
	for _, s := range g.stats(0) {
		for _, c := range s.Classes {
			gauge := func(d *prometheus.Desc, v float64) { ch <- metric(d, prometheus.GaugeValue, v, s.Pool, c.Class) }
			gauge(heldDesc, float64(c.Held))
			gauge(heldTokensDesc, c.HeldTokens)
			gauge(heldBytesDesc, float64(c.HeldBytes))
			gauge(drainDesc, c.Rate)
			gauge(owedDesc, c.OwedTokens)
		}
	}
}
