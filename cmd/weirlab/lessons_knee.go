package main

import (
	"fmt"
	"math"

	"github.com/weirproxy/weir/pkg/knee"
	"github.com/weirproxy/weir/pkg/lab/sim"
)

// lessonKnee is a sweep of the load, and the wait of as many servers with one queue at the same utilization.
var lessonKnee = lesson{
	title: "5. Keep each replica just below its knee", file: "5-knee",
	workloads: []string{"W10"}, loads: kneeLoads, policies: []string{"weir"},
	columns: []lessonColumn{
		{"utilization", func(_ *simGroups, k simKey) string { return fmt.Sprintf("%.2f", k.load/kneeCapacity) }},
		{"TTFT mean", times(ttftMean)}, {"TTFT p99", times(ttftP99)},
		{"wait", func(g *simGroups, k simKey) string { return sim.Short(kneeWait(g, k)) }},
		{"wait by Erlang C", func(_ *simGroups, k simKey) string { return known(erlangWait(k.load)) }},
		{"answers/s", figure(func(r *sim.Result) float64 { return r.Throughput }, "%.1f")},
	},
	says: func(g *simGroups) string {
		below, past := simKey{"W10", 60, "weir"}, simKey{"W10", 80, "weir"}
		return fmt.Sprintf(`The wait is TTFT mean less that of the lightest load, where hardly anybody waits. Erlang C takes the %d replicas for servers that work on one request at a time, %.1f requests/s in all, the knee that
`+"`weirlab profile`"+` works out. At %.2f of it the measured wait is %s s and Erlang's %s s: a replica works on many requests at once, Erlang's server on one. At %.2f the wait is %s s, and grows as long as the load lasts, while %.1f answers/s
come out.`,
			kneeReplicas, kneeCapacity, below.load/kneeCapacity, sim.Short(kneeWait(g, below)), sim.Short(erlangWait(below.load)),
			past.load/kneeCapacity, sim.Short(kneeWait(g, past)), g.median(past, func(r *sim.Result) float64 { return r.Throughput }))
	},
	chart: func(g *simGroups) *chart {
		measured, erlang := curve{name: "measured (W10, weir)"}, curve{name: "Erlang C"}
		for _, load := range kneeLoads[1:] {
			x := load / kneeCapacity
			measured.x, measured.y = append(measured.x, x), append(measured.y, kneeWait(g, simKey{"W10", load, "weir"}))
			if w := erlangWait(load); !math.IsInf(w, 0) {
				erlang.x, erlang.y = append(erlang.x, x), append(erlang.y, w)
			}
		}
		return &chart{title: "Wait over utilization", x: "utilization", y: "seconds", log: true, curves: []curve{measured, erlang}}
	},
}

// W10's pool, and its knee in requests per second (weirlab profile -workload W10).
const (
	kneeReplicas = 4
	kneeCapacity = 68.8
)

var kneeLoads = []float64{5, 20, 35, 50, 55, 60, 65, 70, 80}

func kneeWait(g *simGroups, k simKey) float64 {
	lightest := simKey{k.workload, g.loads(k.workload)[0], k.policy}
	return g.median(k, ttftMean) - g.median(lightest, ttftMean)
}

// erlangWait is the mean wait of M/M/c with a server for each replica.
func erlangWait(load float64) float64 {
	return knee.QueueWait(kneeReplicas, load/kneeCapacity*kneeReplicas, kneeReplicas/kneeCapacity)
}

// known is a time, or nothing where it has no end.
func known(s float64) string {
	if math.IsInf(s, 0) {
		return "no end"
	}
	return sim.Short(s)
}
