package admin

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
)

// learned is a prometheus.Collector of what the routers have learned of their pools, and of how good their predictions are.
type learned struct {
	estimates func() []route.Estimates
}

func learnedDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("weir_"+name, help, append([]string{"pool"}, labels...), nil)
}

var (
	predictedDesc = learnedDesc("predicted_total", "Sums of what weir predicted, of requests that the replicas computed: seconds held at the gate, of those held with a prediction; prompt, cached and output tokens; seconds from the pick to the first token.", "what")
	actualDesc    = learnedDesc("actual_total", "The same as it turned out, by the replicas' own counters but for the gate. A rate of weir_predicted_total over one of this is the bias.", "what")
	bytesDesc     = learnedDesc("bytes_per_token", "Bytes of a prompt token over all prompts, learned from the replicas' prompt counters.")
	shareDesc     = replicaDesc("index_share", "Share of its KV cache that the replica is taken to hold for weir's requests, 0.25 to 1, and 0 where it does not cache: less where fewer hits are counted than predicted.")
	liveDesc      = learnedDesc("little_live", "Leases live on average over five minutes: L of Little's law.")
	endedDesc     = learnedDesc("little_ended", "Seconds of leases that end in a second, averaged alike: lambda*W.")
	leakDesc      = learnedDesc("little_difference", "L less lambda*W: near 0 in steady traffic. What stays is that many leases that nobody releases.")
	outputDesc    = learnedDesc("expected_output_tokens", "Tokens that an answer of the class is expected to have; absent until some have ended.", "class")
)

func (learned) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range append([]*prometheus.Desc{ownDesc, predictedDesc, actualDesc, bytesDesc, shareDesc, liveDesc, endedDesc, leakDesc, outputDesc}, steps...) {
		ch <- d
	}
}

func (c learned) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.estimates() {
		for _, t := range s.Truth {
			ch <- metric(predictedDesc, prometheus.CounterValue, t.Predicted, s.Pool, t.What)
			ch <- metric(actualDesc, prometheus.CounterValue, t.Actual, s.Pool, t.What)
		}
		ch <- metric(ownDesc, prometheus.GaugeValue, s.Own, s.Pool)
		ch <- metric(bytesDesc, prometheus.GaugeValue, s.BytesPerToken, s.Pool)
		live, ended := 0.0, 0.0
		for _, r := range s.Replicas {
			live, ended = live+r.Little.Live, ended+r.Little.Ended
			ch <- metric(shareDesc, prometheus.GaugeValue, r.IndexShare, s.Pool, r.Endpoint)
			collectSteps(ch, s.Pool, r)
		}
		ch <- metric(liveDesc, prometheus.GaugeValue, live, s.Pool)
		ch <- metric(endedDesc, prometheus.GaugeValue, ended, s.Pool)
		ch <- metric(leakDesc, prometheus.GaugeValue, live-ended, s.Pool)
		outputs := byClass(s.Outputs)
		for _, class := range slices.Sorted(maps.Keys(outputs)) {
			ch <- metric(outputDesc, prometheus.GaugeValue, outputs[class], s.Pool, class)
		}
	}
}

// byClass is the expected tokens of each class: the mean over models, by how many answers each gave.
func byClass(outputs []pool.OutputStats) map[string]float64 {
	sums, answers := map[string]float64{}, map[string]float64{}
	for _, o := range outputs {
		sums[o.Class] += float64(o.Answers) * o.Expected
		answers[o.Class] += float64(o.Answers)
	}
	for class := range sums {
		sums[class] /= answers[class]
	}
	return sums
}
