package main

import (
	"fmt"

	"github.com/weirproxy/weir/pkg/lab/sim"
)

// lessons are in the order of DESIGN.md.
var lessons = []lesson{
	{
		title: "1. Round robin counts requests, and requests differ 100x in tokens", file: "1-round-robin",
		workloads: []string{"W7"}, policies: []string{"weir", "round-robin", "least-request"},
		columns: []lessonColumn{
			interactive("interactive TTFT mean", figMean), interactive("interactive p99", figP99),
			{"busiest replica, work over mean", figure(func(r *sim.Result) float64 { return r.Skew }, "%.2f")},
		},
		says: func(g *simGroups) string {
			at := g.loads("W7")[1]
			rr, lr, weir := g.class("W7", at, "round-robin", figP99), g.class("W7", at, "least-request", figP99), g.class("W7", at, "weir", figP99)
			return fmt.Sprintf("At %g requests/s the p99 of interactive requests is %s s under round robin, %s s under least request and %s s under weir: %.0f and %.0f times weir's.",
				at, sim.Short(rr), sim.Short(lr), sim.Short(weir), rr/weir, lr/weir)
		},
		chart: func(g *simGroups) *chart {
			return g.chartOver("W7", "Interactive TTFT p99 beside bulk (W7)", interactiveOf(figP99))
		},
	},
	{
		title: "2. Balance work: tokens, not requests", file: "2-tokens",
		workloads: []string{"W7"}, policies: []string{byTokens, byRequests},
		columns: []lessonColumn{
			interactive("interactive TTFT mean", figMean), interactive("interactive p99", figP99),
			{"busiest replica, work over mean", figure(func(r *sim.Result) float64 { return r.Skew }, "%.2f")},
		},
		says: func(g *simGroups) string {
			at := g.loads("W7")[1]
			tokens, requests := g.class("W7", at, byTokens, figP99), g.class("W7", at, byRequests, figP99)
			return fmt.Sprintf("Without a gate and without affinity, the same cost rule on two loads: at %g requests/s the p99 of interactive requests is %s s by pending tokens and %s s by requests.",
				at, sim.Short(tokens), sim.Short(requests))
		},
		chart: func(g *simGroups) *chart {
			return g.chartOver("W7", "Interactive TTFT p99 by what is balanced (W7)", interactiveOf(figP99))
		},
	},
	{
		title: "3. Route by prefix: a re-prefill becomes a warm cache hit", file: "3-prefix",
		workloads: []string{"W5", "W6"}, policies: []string{"weir", "weir/affinity=none"},
		columns: []lessonColumn{
			{"hit rate, %", figure(hitPercent, "%.0f")}, {"ceiling, %", figure(ceilingPercent, "%.0f")},
			{"TTFT mean", times(ttftMean)}, {"TTFT p99", times(ttftP99)},
		},
		says: func(g *simGroups) string {
			at := g.loads("W5")[1]
			with, without := simKey{"W5", at, "weir"}, simKey{"W5", at, "weir/affinity=none"}
			return fmt.Sprintf("RAG at %g requests/s finds %.0f %% of its prompt tokens in caches, and %.0f %% if the prefix draws nobody; TTFT mean is %s and %s s.",
				at, g.median(with, hitPercent), g.median(without, hitPercent), sim.Short(g.median(with, ttftMean)), sim.Short(g.median(without, ttftMean)))
		},
		chart: func(g *simGroups) *chart {
			return g.chartOver("W5", "TTFT mean with and without affinity (W5, RAG 35:1)", ttftMean)
		},
	},
	lessonTail,
	lessonKnee,
	lessonCluster,
}

const (
	byTokens   = "weir/queue=none/affinity=none"
	byRequests = "weir/queue=none/affinity=none/balance_on=requests"
)

// interactiveOf is a figure of the interactive requests of a run, which may be all that it has.
func interactiveOf(of func(sim.Figures) float64) func(*sim.Result) float64 {
	return func(r *sim.Result) float64 { return of(r.Classes["interactive"]) }
}

// class is the median of an interactive figure.
func (g *simGroups) class(workload string, load float64, policy string, of func(sim.Figures) float64) float64 {
	return g.median(simKey{workload, load, policy}, interactiveOf(of))
}

func interactive(name string, of func(sim.Figures) float64) lessonColumn {
	return lessonColumn{name, times(interactiveOf(of))}
}

// times and figure are columns of medians.
func times(of func(*sim.Result) float64) func(*simGroups, simKey) string {
	return func(g *simGroups, k simKey) string { return sim.Short(g.median(k, of)) }
}

func figure(of func(*sim.Result) float64, format string) func(*simGroups, simKey) string {
	return func(g *simGroups, k simKey) string { return fmt.Sprintf(format, g.median(k, of)) }
}

// chartOver is a figure over the load of one workload, a curve for each policy.
func (g *simGroups) chartOver(workload, title string, of func(*sim.Result) float64) *chart {
	c := &chart{title: title, x: "requests/s", y: "seconds", log: true}
	for _, p := range g.policies(workload) {
		c.curves = append(c.curves, g.curve(workload, p, of))
	}
	return c
}
