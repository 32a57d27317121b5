package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/pkg/route"
)

// knees is a prometheus.Collector of where the pools stand to their knees.
type knees struct {
	knees func() []route.Knee
}

var (
	neededDesc     = poolDesc("replicas_needed", "Replicas that the pool needs to stay below its knee under what comes now: for autoscalers.")
	gateWaitDesc   = poolDesc("gate_wait_seconds", "Mean wait at the gate of the last hundred requests, of those that were not held too.")
	erlangWaitDesc = poolDesc("erlang_c_wait_seconds", "Mean wait before a prompt is computed by Erlang C for what comes; absent without an end, and while nothing comes.")
	saturationDesc = replicaDesc("saturation", "Wait behind the replica's backlog over its knee's: 1 is the knee.")
	tauDesc        = replicaDesc("tau_seconds", "Wait behind the replica's backlog at which its knee is.")
)

func (knees) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{neededDesc, gateWaitDesc, erlangWaitDesc, saturationDesc, tauDesc} {
		ch <- d
	}
}

func (c knees) Collect(ch chan<- prometheus.Metric) {
	for _, k := range c.knees() {
		ch <- metric(neededDesc, prometheus.GaugeValue, float64(k.Needed.Replicas), k.Pool)
		ch <- metric(gateWaitDesc, prometheus.GaugeValue, k.Wait.Gate, k.Pool)
		if k.Wait.ErlangC != nil {
			ch <- metric(erlangWaitDesc, prometheus.GaugeValue, *k.Wait.ErlangC, k.Pool)
		}
		for _, r := range k.Replicas {
			ch <- metric(saturationDesc, prometheus.GaugeValue, r.Saturation, k.Pool, r.Endpoint)
			ch <- metric(tauDesc, prometheus.GaugeValue, r.Tau, k.Pool, r.Endpoint)
		}
	}
}
