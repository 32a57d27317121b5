package main

import (
	"fmt"
	"slices"

	"github.com/weirproxy/weir/pkg/lab/sim"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// lessonTail is the frontier of W7: what bulk costs interactive requests, and how much of what they leave it gets.
var lessonTail = lesson{
	title: "4. Protect the tail: interactive before bulk, and bulk kept off", file: "4-tail",
	workloads: []string{tailAlone, "W7-0.5", "W7-1", "W7-2"}, loads: []float64{15, 40},
	policies: []string{"weir", "weir/queue=fifo", "weir/queue=none"},
	columns: []lessonColumn{
		interactive("interactive p99", figP99),
		{"over p99 without bulk", func(g *simGroups, k simKey) string { return fmt.Sprintf("%.2f", bulkCost(g, k)) }},
		{"bulk answers/s", figure(bulkRate, "%.2f")},
		{"of the leftover, %", func(g *simGroups, k simKey) string { return fmt.Sprintf("%.0f", 100*bulkShare(g, k)) }},
		{"bulk refused, %", figure(bulkRefused, "%.0f")},
	},
	says: func(g *simGroups) string {
		few, many, fifo := simKey{"W7-2", 15, "weir"}, simKey{"W7-2", 40, "weir"}, simKey{"W7-2", 15, "weir/queue=fifo"}
		return fmt.Sprintf(`Beside bulk at twice what the replicas hold of it, %g interactive requests/s have %.2f times the p99 that they have alone, while bulk gets %.0f %% of the leftover, and %g have %.2f times, at %.0f %%;
first come first served, the former have %.0f times. The leftover is what interactive requests leave of the replicas' time, if each sort takes its part of what they hold of it alone. It is also, within
1 %%, the most that a gate was seen to give bulk at all, on every replica at once and up to all KV; more than 100 %% is taken from interactive requests.
W7-0 is without bulk, W7-0.5, W7-1 and W7-2 with bulk at that many times what the replicas hold of it; first come first served and without a gate a backlog grows all the time, so that those figures grow with the run.`,
			few.load, bulkCost(g, few), 100*bulkShare(g, few), many.load, bulkCost(g, many), 100*bulkShare(g, many), bulkCost(g, fifo))
	},
	chart: frontier,
}

// tailAlone is W7's interactive requests without bulk.
const tailAlone = "W7-0"

// bulkCost is the p99 of interactive requests over what it is, under weir, without bulk.
func bulkCost(g *simGroups, k simKey) float64 {
	return g.class(k.workload, k.load, k.policy, figP99) / g.class(tailAlone, k.load, "weir", figP99)
}

func bulkRate(r *sim.Result) float64 { return r.Classes["bulk"].Throughput }

// bulkShare is how much of the leftover bulk gets.
func bulkShare(g *simGroups, k simKey) float64 {
	return g.median(k, bulkRate) / workload.Leftover(k.load, 8)
}

func bulkRefused(r *sim.Result) float64 {
	f := r.Classes["bulk"]
	return 100 * float64(f.Late+f.Refused) / float64(max(f.Arrived, 1))
}

// frontier plots the cost over the share, a curve for each policy and load through the rates of bulk, from none on.
func frontier(g *simGroups) *chart {
	c := &chart{title: "What bulk costs interactive requests (W7)", x: "bulk's share of the leftover, %", y: "p99, times that without bulk", log: true}
	for _, load := range g.loads(tailAlone) {
		for _, p := range g.policies(tailAlone) {
			of := curve{name: fmt.Sprintf("%s, %g/s", p, load)}
			keys := slices.DeleteFunc(slices.Clone(g.order), func(k simKey) bool {
				return k.load != load || k.policy != p
			})
			for _, k := range keys {
				of.x, of.y = append(of.x, 100*bulkShare(g, k)), append(of.y, bulkCost(g, k))
			}
			c.curves = append(c.curves, of)
		}
	}
	return c
}
