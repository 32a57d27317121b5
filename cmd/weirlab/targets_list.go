package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/sim"
)

// targets are those of the workloads W3 to W10, in their order.
var targets = []target{
	{
		title: "W3: the knee", about: "The highest load, by 0.25 requests/s, at which the p99 of TTFT stays below 1 s for ten minutes.",
		check: func(m *measurer) (all []verdict) {
			for _, c := range []struct {
				workload string
				rr       float64 // weir's knee is to be so many times round robin's
			}{{"W3", 2}, {"W3-fresh", 1.75}} {
				weir, oracle := m.knee(c.workload, policy.Weir, w3Loads), m.knee(c.workload, "oracle", w3Loads)
				all = append(all, atLeast(fmt.Sprintf("%s: weir's %g/s over the oracle's %g/s", c.workload, weir, oracle), weir/oracle, 0.97))
				for _, p := range published() {
					knee, bound := m.knee(c.workload, p, w3Loads), 1.0
					if p == "round-robin" {
						bound = c.rr
					}
					v := atLeast(fmt.Sprintf("%s: weir's over that of %s, %g/s", c.workload, p, knee), weir/max(knee, w3Loads[0]), bound)
					if knee == 0 {
						v.at = fmt.Sprintf("%s: weir's over that of %s, below %g/s", c.workload, p, w3Loads[0])
					}
					all = append(all, v)
				}
			}
			return all
		},
	},
	{
		title: "W4: the Mooncake trace", about: "Below saturation: TTFT mean over the oracle's, and over the best published rule's. Past it: answers/s over the peak's, and who wins.",
		trace: "mooncake_conversation.jsonl",
		check: func(m *measurer) (all []verdict) {
			for _, c := range []struct {
				cache string
				kv    []int
				below []float64
				past  float64
			}{{"0.3M", nil, []float64{1, 1.75}, 2.25}, {"3M", []int{3_000_000}, []float64{1, 2}, 2.5}} {
				g := m.run(simOptions{policies: policy.Names(), loads: append(slices.Clone(c.below), c.past), profile: "32B", replicas: 8, kv: c.kv})
				all = append(all, g.against(traced, c.cache+" cache, x", c.below, c.past)...)
			}
			return all
		},
	},
	{
		title: "W5: RAG", about: "TTFT mean and p99 over those of round robin, least request and hashing, and hits over what one cache with all memory hits.",
		check: func(m *measurer) (all []verdict) {
			others := []string{"round-robin", "least-request", "prefix-hash"}
			for _, w := range []string{"W5-19", "W5-35", "W5-47", "W5-73"} {
				g := m.run(simOptions{workloads: []string{w}, policies: append([]string{policy.Weir}, others...)})
				for _, load := range g.loads(w) {
					mean, p99 := g.bestOf(others, w, load, ttftMean), g.bestOf(others, w, load, ttftP99)
					k := simKey{w, load, policy.Weir}
					all = append(all,
						atMost(fmt.Sprintf("%s at %g/s: weir/%s", w, load, mean), g.over(w, load, mean, ttftMean), 1),
						atMost(fmt.Sprintf("%s at %g/s: p99, weir/%s", w, load, p99), g.over(w, load, p99, ttftP99), 1),
						atLeast(fmt.Sprintf("%s at %g/s: hits/ceiling", w, load), g.median(k, hitPercent)/g.median(k, ceilingPercent), 0.95))
				}
			}
			return all
		},
	},
	{
		title: "W6: conversations", about: "Below saturation: TTFT mean over the oracle's, and over the best published rule's. Past it: answers/s over the peak's, and who wins.",
		check: func(m *measurer) []verdict {
			below, past := []float64{10, 15, 19}, 25.0
			g := m.run(simOptions{workloads: []string{"W6"}, policies: policy.Names(), loads: append(slices.Clone(below), past)})
			return g.against("W6", "W6 at requests/s ", below, past)
		},
	},
	{
		title: "W7: interactive beside bulk", about: "The p99 of interactive requests over what it is without bulk, at a share of the leftover that bulk gets ([lesson 4](lessons.md)). Five seeds.",
		check: func(m *measurer) (all []verdict) {
			g := m.run(simOptions{workloads: []string{tailAlone, "W7-1", "W7-2"}, policies: []string{policy.Weir}, loads: []float64{15, 40}, seeds: 5})
			for _, c := range []struct{ load, cost, share float64 }{{15, 1.15, 0.8}, {40, 1.1, 0.4}} {
				for _, w := range []string{"W7-1", "W7-2"} {
					k := simKey{w, c.load, policy.Weir}
					all = append(all, atMost(fmt.Sprintf("%s, %g interactive requests/s: p99 with bulk over p99 without", w, c.load), bulkCost(g, k), c.cost),
						atLeast(fmt.Sprintf("%s, %g interactive requests/s: bulk's share of the leftover", w, c.load), bulkShare(g, k), c.share))
				}
			}
			return all
		},
	},
	{
		title: "W8: past the knee", about: "At 1.2 times the capacity for the mix: answers/s, and their prompt tokens/s, over the most at any load up to that, and the p99 of interactive requests.",
		check: func(m *measurer) []verdict {
			loads := m.loads("W8")
			loads = loads[:len(loads)-2]
			g := m.run(simOptions{workloads: []string{"W8"}, policies: []string{policy.Weir}, loads: loads})
			past := loads[len(loads)-1]
			ofPeak := func(of func(*sim.Result) float64) float64 {
				peak := 0.0
				for _, load := range loads {
					peak = max(peak, g.median(simKey{"W8", load, policy.Weir}, of))
				}
				return g.median(simKey{"W8", past, policy.Weir}, of) / peak
			}
			return []verdict{
				atLeast(fmt.Sprintf("%g/s: answers/s over the peak's", past), ofPeak(throughput), 0.95),
				atLeast(fmt.Sprintf("%g/s: their prompt tokens/s over the peak's", past), ofPeak(mixedTokens), 0.95),
				atMost(fmt.Sprintf("%g/s: interactive p99 in seconds, deadline 30", past), g.class("W8", past, policy.Weir, figP99), 30),
			}
		},
	},
	{
		title: "W8: rates that are wrong", about: "At 1.2 times the capacity, from a cold start and measured from two minutes on: weir told of replicas that are twice as slow or fast as these, or of another model's, over weir that is told the truth and keeps to it.",
		check: func(m *measurer) (all []verdict) {
			const right = policy.Weir + "/learn=false"
			loads := m.loads("W8")
			past := loads[len(loads)-3]
			wrong := []string{policy.Weir + "/rates=2", policy.Weir + "/rates=0.5", policy.Weir + "/profile=8B"}
			g := m.run(simOptions{workloads: []string{"W8"}, policies: append(wrong, right), loads: []float64{past}, warm: 2 * time.Minute})
			of := func(name string, figure func(*sim.Result) float64) float64 {
				return g.median(simKey{"W8", past, name}, figure)
			}
			for _, name := range wrong {
				at := fmt.Sprintf("%s at %g/s: ", name, past)
				all = append(all,
					atLeast(at+"answers/s", of(name, throughput)/of(right, throughput), 0.95),
					atLeast(at+"their prompt tokens/s", of(name, mixedTokens)/of(right, mixedTokens), 0.95),
					atMost(at+"interactive p99", g.class("W8", past, name, figP99)/g.class("W8", past, right, figP99), 1.1))
			}
			return all
		},
	},
	{title: "W9: routers and replicas that come and go", about: "Several routers know nothing of each other and see gauges a second old. Hits fall short by what one router sends off its home, for the load that it sees there: the next one looks for it at the home.", check: churn},
	{
		title: "W10: no reuse", about: "TTFT mean over that of least pending tokens.",
		check: func(m *measurer) (all []verdict) {
			g := m.run(simOptions{workloads: []string{"W10"}, policies: []string{policy.Weir, "least-pending"}})
			for _, load := range g.loads("W10") {
				all = append(all, atMost(fmt.Sprintf("%g/s: weir/least-pending", load), g.over("W10", load, "least-pending", ttftMean), 1.03))
			}
			return all
		},
	},
}

var w3Loads = quarters(5, 18)

// mixedTokens is the prompt tokens of the answers that end in a second, by the mean lengths of W7's and W8's requests.
func mixedTokens(r *sim.Result) float64 {
	return 2000*r.Classes["interactive"].Throughput + 23_000*r.Classes["bulk"].Throughput
}

func throughput(r *sim.Result) float64 { return r.Throughput }

// against is weir beside the oracle and the published rules, below saturation and past it.
func (g *simGroups) against(workload, at string, below []float64, past float64) (all []verdict) {
	for _, load := range below {
		best := g.bestOf(published(), workload, load, ttftMean)
		all = append(all,
			atMost(fmt.Sprintf("%s%g: weir/oracle", at, load), g.over(workload, load, "oracle", ttftMean), 1.05),
			atMost(fmt.Sprintf("%s%g: weir/%s", at, load, best), g.over(workload, load, best, ttftMean), benchLoss))
	}
	peak := 0.0
	for _, load := range g.loads(workload) {
		peak = max(peak, g.median(simKey{workload, load, policy.Weir}, throughput))
	}
	best := g.bestOf(published(), workload, past, ttftMean)
	return append(all,
		atLeast(fmt.Sprintf("%s%g, past saturation: answers/s over the peak's", at, past), g.median(simKey{workload, past, policy.Weir}, throughput)/peak, 0.95),
		verdict{fmt.Sprintf("%s%g, past saturation: weir/%s", at, past, best), "shown", fmt.Sprintf("%.3g", g.over(workload, past, best, ttftMean)), true})
}

// churn is W9.
func churn(m *measurer) (all []verdict) {
	for _, c := range []struct {
		workload string
		load     float64
		hits     float64 // of one router's
	}{{"W3", 10, 0.95}, {"W3", 14, 0.95}, {"W3-fresh", 8, 0.95}, {"W3-fresh", 12, 0.95}, {"W5-35", 16, 0.95}, {"W5-35", 20, 0.95}, {"W6", 15, 0.95}, {"W6-chat", 35, 0.92}} {
		o := simOptions{workloads: []string{c.workload}, policies: []string{policy.Weir}, loads: []float64{c.load}}
		k := simKey{c.workload, c.load, policy.Weir}
		one := m.run(o)
		for _, o.routers = range []int{2, 4} {
			o.stale = time.Second
			g := m.run(o)
			at := fmt.Sprintf("%s at %g/s, %d routers", c.workload, c.load, o.routers)
			all = append(all, atLeast(at+": hits over one router's", g.median(k, hitPercent)/one.median(k, hitPercent), c.hits),
				atLeast(fmt.Sprintf("%s: answers/s over one router's (TTFT mean %s s, one %s)", at, sim.Short(g.median(k, ttftMean)), sim.Short(one.median(k, ttftMean))),
					g.median(k, throughput)/one.median(k, throughput), 0.98))
		}
	}
	for _, c := range []struct {
		workload string
		load     float64
	}{{"W3", 10}, {"W9", 20}} {
		o := simOptions{workloads: []string{c.workload}, policies: []string{policy.Weir}, loads: []float64{c.load}, routers: 2, stale: time.Second}
		o.events = []sim.Event{{Kind: sim.Restart, Target: 0, At: 4 * time.Minute}}
		k := simKey{c.workload, c.load, policy.Weir}
		o.warm, o.length = 3*time.Minute, 4*time.Minute
		before := m.run(o).median(k, hitPercent)
		o.warm, o.length = 4*time.Minute, 5*time.Minute
		all = append(all, atLeast(fmt.Sprintf("%s at %g/s, one of two routers restarts: hits in the minute after over those of the minute before", c.workload, c.load), m.run(o).median(k, hitPercent)/before, 0.9))
	}
	o := simOptions{workloads: []string{"W9"}, policies: []string{policy.Weir}, loads: []float64{20}}
	o.events = []sim.Event{{Kind: sim.Die, Target: 1, At: 3 * time.Minute}, {Kind: sim.Join, Target: 1, At: 4 * time.Minute}}
	g := m.run(o)
	return append(all, atMost("W9 at 20/s, a replica dies: requests that went to it first, from 1 s after",
		g.median(simKey{"W9", 20, policy.Weir}, func(r *sim.Result) float64 { return float64(r.Tried) }), 0))
}
