package main

import (
	"fmt"
	"strings"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/sim"
)

// kneeTables lists the tables, in the order of docs/knee.md.
func kneeTables() []*kneeTable {
	tables := []*kneeTable{bulkTable, sweepTable}
	for _, profile := range []string{"8B", "32B", "70B"} {
		tables = append(tables, boundTable(profile))
	}
	return append(tables, lowTable)
}

// without names, for a workload of W7, the one that is the same but for its bulk.
var without = map[string]string{"W7-1": tailAlone, "W7-2": tailAlone, "W7-burst": "W7-burst-0"}

// bulkTable is W7 under weir and each control.
var bulkTable = &kneeTable{
	title: "W7: interactive beside bulk",
	about: `Bulk comes at 1 (W7-1, W7-burst) and 2 times (W7-2) what the replicas hold of it alone; in W7-burst interactive requests come in bursts (CV 13). The p99 is over that of
weir without bulk, and bulk's share of the leftover as in [lesson 4](lessons.md). First come, first served and without a gate a backlog grows as long as the load lasts. Five seeds.`,
	runs: []simOptions{
		{workloads: []string{tailAlone, "W7-burst-0"}, policies: []string{policy.Weir}, loads: []float64{15, 40}, seeds: 5},
		{workloads: []string{"W7-1", "W7-2", "W7-burst"}, policies: withControls, loads: []float64{15, 40}, seeds: 5},
	},
	hidden: []string{tailAlone, "W7-burst-0"},
	columns: []lessonColumn{
		marked("interactive p99", interactiveOf(figP99), lower, sim.Short),
		{"over p99 without bulk", func(g *simGroups, k simKey) string {
			return fmt.Sprintf("%.2f", g.median(k, interactiveOf(figP99))/g.class(without[k.workload], k.load, policy.Weir, figP99))
		}},
		marked("bulk, thousand prompt tokens/s", inClass("bulk", thousandTokens), higher, number("%.1f")),
		{"of the leftover, %", func(g *simGroups, k simKey) string { return fmt.Sprintf("%.0f", 100*bulkShare(g, k)) }},
		percents("shed, %: interactive / bulk", shedPercent), percents("late, %: interactive / bulk", latePercent),
	},
	says: func(g *simGroups) string {
		lost := g.beaten(interactiveOf(figP99), lower, inClass("bulk", thousandTokens), higher)
		if lost == nil {
			return "Nowhere is a control better than weir in one of interactive p99 and bulk tokens and not worse in the other."
		}
		return "weir is beaten, in one of interactive p99 and bulk tokens and without being better in the other: " + strings.Join(lost, "; ") + "."
	},
}

// pastKnee is the place of 1.2 times the capacity among W8's loads (tenths).
const pastKnee = 9

// sweepTable is W8 under weir and each control.
var sweepTable = &kneeTable{
	title: "W8: to the knee and past it",
	about: `0.3 to 1.3 times the capacity for the mix. Answers/s of policies that shed bulk and of those that do not are of different mixes past it: prompt tokens/s tell. Three seeds.`,
	runs:  []simOptions{{workloads: []string{"W8"}, policies: withControls, loads: tenths()}},
	says: func(g *simGroups) string {
		past := g.loads("W8")[pastKnee]
		weir, shed := simKey{"W8", past, policy.Weir}, simKey{"W8", past, policy.Weir + "/gate=static-shed"}
		return fmt.Sprintf(`At %g/s weir has an interactive p99 of %s s and bulk waits %s s in the median; where static thresholds shed bulk it is %s s and %s s, with %.3f times weir's prompt tokens/s, and %.0f %% of
bulk refused.`, past, sim.Short(g.median(weir, interactiveOf(figP99))), sim.Short(g.median(weir, inClass("bulk", figP50))),
			sim.Short(g.median(shed, interactiveOf(figP99))), sim.Short(g.median(shed, inClass("bulk", figP50))),
			g.median(shed, promptTokens)/g.median(weir, promptTokens), g.median(shed, inClass("bulk", shedPercent)))
	},
	columns: []lessonColumn{
		{"of capacity", func(_ *simGroups, k simKey) string { return fmt.Sprintf("%.1f", k.load/mixCapacity("32B")) }},
		marked("answers/s", throughput, higher, number("%.2f")),
		marked("thousand prompt tokens/s", promptTokens, higher, number("%.1f")),
		{"interactive p50", times(interactiveOf(figP50))}, marked("interactive p99", interactiveOf(figP99), lower, sim.Short),
		{"bulk p50", times(inClass("bulk", figP50))}, marked("bulk p99", inClass("bulk", figP99), lower, sim.Short),
		percents("shed, %: interactive / bulk", shedPercent), percents("late, %: interactive / bulk", latePercent),
	},
	check: func(g *simGroups) (all []verdict) {
		loads := g.loads("W8")[:pastKnee+1]
		past := loads[pastKnee]
		for _, p := range g.policies("W8") {
			for _, f := range []struct {
				name string
				of   func(*sim.Result) float64
			}{{"answers/s", throughput}, {"prompt tokens/s", promptTokens}} {
				peak := 0.0
				for _, load := range loads {
					peak = max(peak, g.median(simKey{"W8", load, p}, f.of))
				}
				at, got := fmt.Sprintf("%s, %g/s: %s over the peak's", p, past, f.name), g.median(simKey{"W8", past, p}, f.of)/peak
				if p == policy.Weir {
					all = append(all, atLeast(at, got, 0.95))
				} else {
					all = append(all, shown(at, got))
				}
			}
		}
		return all
	},
}

// shown is a figure that is held against nothing.
func shown(at string, got float64) verdict {
	return verdict{at, "shown", fmt.Sprintf("%.3g", got), true}
}

// lowTable is W10 where hardly anybody waits: there the knee must cost nothing.
var lowTable = &kneeTable{
	title:   "W10: the knee costs nothing at low load",
	about:   "No reuse, 4 replicas 8B, up to half of what they hold. Five seeds.",
	runs:    []simOptions{{workloads: []string{"W10"}, policies: []string{policy.Weir, noKnee, policy.Weir + "/queue=none"}, loads: []float64{5, 20, 35}, seeds: 5}},
	columns: []lessonColumn{{"TTFT mean", times(ttftMean)}, {"TTFT p99", times(ttftP99)}, {"answers/s", figure(throughput, "%.2f")}},
	check: func(g *simGroups) (all []verdict) {
		for _, load := range g.loads("W10") {
			all = append(all, atMost(fmt.Sprintf("%g/s: TTFT mean, weir over %s", load, noKnee), g.over("W10", load, noKnee, ttftMean), 1),
				atMost(fmt.Sprintf("%g/s: TTFT p99, weir over %s", load, noKnee), g.over("W10", load, noKnee, ttftP99), 1))
		}
		return all
	},
}

// noKnee is weir with only bulk waiting.
const noKnee = policy.Weir + "/rule=none"
