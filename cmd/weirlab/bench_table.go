package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/sim"
)

// benchLoss is by how much another rule must be better to win: less is chance.
const benchLoss = 1.02

// benchOthers are not published rules: weir, and what knows more than any router can.
var benchOthers = []string{policy.Weir, "oracle"}

// benchLine is one line of the table: a workload at a load, or one class of it.
type benchLine struct {
	groups   *simGroups
	workload string
	load     float64
	class    string // empty: all requests
}

// figures are those of a run that the line is about.
func (l *benchLine) figures(r *sim.Result) sim.Figures {
	if l.class != "" {
		return r.Classes[l.class]
	}
	return r.Figures
}

// median is a figure's, of a policy, over the seeds.
func (l *benchLine) median(policy string, of func(sim.Figures) float64) float64 {
	return l.groups.median(simKey{l.workload, l.load, policy}, func(r *sim.Result) float64 { return of(l.figures(r)) })
}

// best is the published rule with the lowest figure.
func (l *benchLine) best(of func(sim.Figures) float64) (name string, value float64) {
	for _, p := range l.groups.policies(l.workload) {
		if slices.Contains(benchOthers, p) {
			continue
		}
		if v := l.median(p, of); name == "" || v < value {
			name, value = p, v
		}
	}
	return name, value
}

// writeBench writes README's table, and how many of its cells weir loses.
func writeBench(w io.Writer, rows []simRow) {
	groups := group(rows)
	lines, seeds := benchLines(groups)
	fmt.Fprint(w, `| workload | requests/s | weir | round robin | best published rule | oracle | hits / ceiling |
|---|---|---|---|---|---|---|
`)
	lost := 0
	for _, l := range lines {
		lost += l.write(w)
	}
	fmt.Fprintf(w, `
TTFT mean / p99 in seconds, medians of %d seeds. Bold: a published rule is better by more than 2 %%, in %d of %d cells. The best rule is that of the
mean and that of the p99, of %d; hits / ceiling is weir's hit rate over what one cache with the memory of all replicas would hit
by dropping the oldest, which is no bound.
`, seeds, lost, 2*len(lines), len(groups.policies(lines[0].workload))-len(benchOthers))
}

// benchLines lists the lines in order: one for each workload and load, or one for each class where there are several.
func benchLines(groups *simGroups) (lines []benchLine, seeds int) {
	for _, w := range groups.workloads() {
		for _, load := range groups.loads(w) {
			results := groups.of[simKey{w, load, policy.Weir}]
			seeds = max(seeds, len(results))
			classes := slices.Sorted(maps.Keys(results[0].Classes))
			if len(classes) < 2 {
				classes = []string{""}
			}
			for _, class := range slices.Backward(classes) { // interactive first
				lines = append(lines, benchLine{groups, w, load, class})
			}
		}
	}
	return lines, seeds
}

// write writes a line and returns how many of its cells weir loses.
func (l *benchLine) write(w io.Writer) (lost int) {
	name := l.workload
	if l.class != "" {
		name += " " + l.class
	}
	mine := func(of func(sim.Figures) float64) string {
		x := l.median(policy.Weir, of)
		if _, best := l.best(of); x > benchLoss*best {
			lost++
			return "**" + sim.Short(x) + "**"
		}
		return sim.Short(x)
	}
	best := func(of func(sim.Figures) float64) string {
		name, x := l.best(of)
		return name + " " + sim.Short(x)
	}
	other := func(policy string) string {
		return sim.Short(l.median(policy, figMean)) + " / " + sim.Short(l.median(policy, figP99))
	}
	fmt.Fprintf(w, "| %s | %g | %s / %s%s | %s | %s / %s | %s | %s |\n", name, l.load, mine(figMean), mine(figP99), l.refused(),
		other("round-robin"), best(figMean), best(figP99), other("oracle"), l.reached())
	return lost
}

// refused says what share of the requests weir refused, if any.
func (l *benchLine) refused() string {
	share := l.median(policy.Weir, func(f sim.Figures) float64 { return 100 * float64(f.Late+f.Refused) / float64(max(f.Arrived, 1)) })
	if share == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.1f %% refused)", share)
}

// reached is the hit rate over the ceiling, and nothing where nothing can be hit.
func (l *benchLine) reached() string {
	ceiling := l.median(policy.Weir, func(f sim.Figures) float64 { return f.Ceiling })
	if ceiling < 0.01 {
		return "-"
	}
	return fmt.Sprintf("%.2f", l.median(policy.Weir, func(f sim.Figures) float64 { return f.HitRate })/ceiling)
}
