package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/pkg/pool"
)

var (
	ownDesc     = poolDesc("own", "Share of the requests that the replicas run that this weir sent, 0.1 to 1.")
	stepDesc    = replicaDesc("step_seconds", "Learned time of a step without tokens.")
	contextDesc = replicaDesc("context_token_seconds", "Learned time that a token of context adds to a step.")
	promptDesc  = replicaDesc("prompt_token_seconds", "Learned time of an uncached prompt token.")
	slowDesc    = replicaDesc("slow", "Learned time of a step of the last load over that of the policy's constants.")
	spreadDesc  = replicaDesc("slow_spread", "Standard deviation of weir_replica_slow, as a share of it.")
	errorDesc   = replicaDesc("step_error", "Root mean square of the difference between a step and what the learned times make of it, as a share.")
	samplesDesc = replicaDesc("step_samples_total", "Scrapes that the times of steps were learned from.")
	stepAgeDesc = replicaDesc("step_age_seconds", "Age of the last scrape that they were learned from; absent before the first.")
)

// steps are what is learned of a replica's steps.
var steps = []*prometheus.Desc{stepDesc, contextDesc, promptDesc, slowDesc, spreadDesc, errorDesc, samplesDesc, stepAgeDesc}

// collectSteps gives them their values.
func collectSteps(ch chan<- prometheus.Metric, name string, r pool.Estimates) {
	gauge := func(d *prometheus.Desc, v float64) { ch <- metric(d, prometheus.GaugeValue, v, name, r.Endpoint) }
	gauge(stepDesc, r.Step.Value)
	gauge(contextDesc, r.ContextToken.Value)
	gauge(promptDesc, r.PromptToken.Value)
	gauge(slowDesc, r.Slow.Value)
	gauge(spreadDesc, r.Slow.Spread)
	gauge(errorDesc, r.Error)
	ch <- metric(samplesDesc, prometheus.CounterValue, float64(r.Slow.Samples), name, r.Endpoint)
	if age := r.Slow.AgeSeconds; age != nil {
		gauge(stepAgeDesc, *age)
	}
}
