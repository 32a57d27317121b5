package main

import (
	"fmt"

	"github.com/weirproxy/weir/pkg/lab/sim"
)

// lessonCluster is the reference cluster at three ratios of prompt to answer tokens.
var lessonCluster = lesson{
	title: "6. Read the traffic profile first: 4xH100, RAG at 19:1, 35:1 and 47:1", file: "6-cluster",
	workloads: clusterWorkloads, policies: clusterPolicies,
	columns: []lessonColumn{
		{"hit rate, %", figure(hitPercent, "%.0f")}, {"ceiling, %", figure(ceilingPercent, "%.0f")},
		{"TTFT mean", times(ttftMean)}, {"TTFT p99", times(ttftP99)},
		{"busiest replica, work over mean", figure(func(r *sim.Result) float64 { return r.Skew }, "%.2f")},
	},
	says: func(g *simGroups) string {
		text := "TTFT mean of round robin over weir's, at the middle load of each:"
		for i, w := range clusterWorkloads {
			at := g.loads(w)[1]
			text += fmt.Sprintf("%s %.1fx at %d:1 (%s and %s s, %g requests/s)", []string{"", ",", ","}[i], g.median(simKey{w, at, "round-robin"}, ttftMean)/g.median(simKey{w, at, "weir"}, ttftMean),
				clusterRatios[i], sim.Short(g.median(simKey{w, at, "round-robin"}, ttftMean)), sim.Short(g.median(simKey{w, at, "weir"}, ttftMean)), at)
		}
		return text + "."
	},
	chart: func(g *simGroups) *chart {
		c := &chart{title: "TTFT mean over prompt tokens per answer token (W5, middle loads)", x: "prompt tokens per answer token", y: "seconds", log: true}
		for _, p := range clusterPolicies {
			of := curve{name: p}
			for i, w := range clusterWorkloads {
				of.x = append(of.x, float64(clusterRatios[i]))
				of.y = append(of.y, g.median(simKey{w, g.loads(w)[1], p}, ttftMean))
			}
			c.curves = append(c.curves, of)
		}
		return c
	},
}

var (
	clusterRatios    = []int{19, 35, 47}
	clusterWorkloads = []string{"W5-19", "W5-35", "W5-47"}
	clusterPolicies  = []string{"weir", "round-robin", "prefix-hash"}
)
