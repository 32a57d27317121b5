package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/sim"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// bounds are the fixed knees of the sweep. An hour is none: no backlog ever is that long.
var bounds = []string{"50ms", "100ms", "250ms", "500ms", "1s", "2s", "4s", noBound}

const noBound = "1h"

const mixReplicas = 8

// mixCapacity is the requests per second of W8's mix that 8 replicas of a profile hold.
func mixCapacity(profile string) float64 {
	p, err := step.Lookup(profile)
	if err != nil {
		panic(err) // the name is a constant
	}
	return workload.MixedCapacity(p, mixReplicas)
}

// mixLoad is so many times that capacity, as a load with two digits after the point.
func mixLoad(profile string, times float64) float64 {
	return math.Round(100*times*mixCapacity(profile)) / 100
}

// tenths are W8's loads at 0.3 to 1.3 of the capacity, by 0.1.
func tenths() (loads []float64) {
	for k := 3; k <= 13; k++ {
		loads = append(loads, mixLoad("32B", float64(k)/10))
	}
	return loads
}

// boundTable is the sweep of a fixed knee on replicas of a profile: the best of them is the true knee, and weir's computed one
// is to be as good.
func boundTable(profile string) *kneeTable {
	policies := []string{policy.Weir}
	for _, b := range bounds {
		policies = append(policies, fixed+b)
	}
	return &kneeTable{
		title: "B*: the best fixed knee, " + profile,
		about: fmt.Sprintf(`W8's mix on %d replicas %s at 1 and 1.2 times their capacity for it. max_backlog=%s is no bound at all, nor one for bulk, which keeps to a quarter of it. B* is, of the
fixed bounds whose interactive p99 is at most %g times the lowest, the one with the most prompt tokens/s. Ten seeds: throughput differs by a few percent from one to the next.`, mixReplicas, profile, noBound, alikeP99),
		runs: []simOptions{{
			workloads: []string{"W8"}, policies: policies, profile: profile, replicas: mixReplicas, seeds: 10,
			loads: []float64{mixLoad(profile, 1), mixLoad(profile, 1.2)},
		}},
		columns: []lessonColumn{
			{"answers/s", figure(throughput, "%.2f")}, {"thousand prompt tokens/s", figure(promptTokens, "%.1f")},
			{"interactive p99", times(interactiveOf(figP99))}, {"bulk p50", times(inClass("bulk", figP50))}, {"bulk p99", times(inClass("bulk", figP99))},
			percents("shed, %: interactive / bulk", shedPercent), percents("late, %: interactive / bulk", latePercent),
		},
		says: flatness, check: checkBound,
	}
}

// flatness says how much the bound matters.
func flatness(g *simGroups) string {
	var all []string
	for _, load := range g.loads("W8") {
		spread := func(of func(*sim.Result) float64) (low, high float64) {
			low = math.Inf(1)
			for _, b := range bounds {
				if b != noBound {
					x := g.median(simKey{"W8", load, fixed + b}, of)
					low, high = min(low, x), max(high, x)
				}
			}
			return low, high
		}
		p99, most := spread(interactiveOf(figP99))
		fewest, tokens := spread(promptTokens)
		none := simKey{"W8", load, fixed + noBound}
		all = append(all, fmt.Sprintf("At %g/s, from %s to %s, interactive p99 is %s to %s s and prompt tokens/s %.1f to %.1f thousand; without a bound %s s and %.1f.", load, bounds[0], bounds[len(bounds)-2],
			sim.Short(p99), sim.Short(most), fewest, tokens, sim.Short(g.median(none, interactiveOf(figP99))), g.median(none, promptTokens)))
	}
	return strings.Join(all, "\n")
}

func checkBound(g *simGroups) (all []verdict) {
	for _, load := range g.loads("W8") {
		weir, best := simKey{"W8", load, policy.Weir}, bestBound(g, load)
		at := fmt.Sprintf("%g/s, B* = %s: ", load, strings.TrimPrefix(best.policy, fixed))
		over := func(of func(*sim.Result) float64) float64 { return g.median(weir, of) / g.median(best, of) }
		all = append(all, atLeast(at+"answers/s over B*'s", over(throughput), 0.97),
			atLeast(at+"prompt tokens/s over B*'s", over(promptTokens), 0.97),
			atMost(at+"interactive TTFT p99 over B*'s", over(interactiveOf(figP99)), 1.1),
			atMost(at+"bulk TTFT p99 over B*'s", over(inClass("bulk", figP99)), 1.1))
	}
	return all
}

// fixed is weir with the knee that follows.
const fixed = policy.Weir + "/max_backlog="

// alikeP99 is how much higher a p99 may be and count as the same: as much as weir's may be over B*'s.
const alikeP99 = 1.1

// bestBound is B* at a load. Not by answers/s: a bound that has bulk refused answers more requests, and smaller ones.
func bestBound(g *simGroups, load float64) (best simKey) {
	lowest, p99 := math.Inf(1), interactiveOf(figP99)
	for _, b := range bounds {
		lowest = min(lowest, g.median(simKey{"W8", load, fixed + b}, p99))
	}
	for _, b := range bounds {
		k := simKey{"W8", load, fixed + b}
		if g.median(k, p99) <= alikeP99*lowest && (best.policy == "" || g.median(k, promptTokens) > g.median(best, promptTokens)) {
			best = k
		}
	}
	return best
}
