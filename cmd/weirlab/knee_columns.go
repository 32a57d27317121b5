package main

import (
	"fmt"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/sim"
)

// inClass is a figure of one class of a run.
func inClass(class string, of func(sim.Figures) float64) func(*sim.Result) float64 {
	return func(r *sim.Result) float64 { return of(r.Classes[class]) }
}

func figP50(f sim.Figures) float64 { return f.TTFTP50 }

// thousandTokens is the prompt tokens, in thousands, of the answers that end in a second.
func thousandTokens(f sim.Figures) float64 { return f.PromptRate / 1000 }

func promptTokens(r *sim.Result) float64 { return thousandTokens(r.Figures) }

// shedPercent and latePercent are shares of the requests that arrived.
func shedPercent(f sim.Figures) float64 { return ofArrived(f, f.Refused) }
func latePercent(f sim.Figures) float64 { return ofArrived(f, f.Late+f.Overdue) }

func ofArrived(f sim.Figures, n int) float64 {
	return 100 * float64(n) / float64(max(f.Arrived, 1))
}

// better says which of two figures wins, by more than chance.
type better func(a, b float64) bool

func lower(a, b float64) bool  { return benchLoss*a < b }
func higher(a, b float64) bool { return a > benchLoss*b }

// marked is a column in which weir's figure is bold where a control's at the same load is better.
func marked(name string, of func(*sim.Result) float64, wins better, format func(float64) string) lessonColumn {
	return lessonColumn{name, func(g *simGroups, k simKey) string {
		text := format(g.median(k, of))
		if k.policy == policy.Weir && len(g.beating(k, of, wins)) > 0 {
			text = "**" + text + "**"
		}
		return text
	}}
}

// beating lists the policies whose figure is better than that of k, at the same load.
func (g *simGroups) beating(k simKey, of func(*sim.Result) float64, wins better) (names []string) {
	for _, o := range g.order {
		if o.workload == k.workload && o.load == k.load && o.policy != k.policy && wins(g.median(o, of), g.median(k, of)) {
			names = append(names, o.policy)
		}
	}
	return names
}

// beaten lists the workloads and loads at which a control is better than weir in one of two figures and not worse in the other.
func (g *simGroups) beaten(one func(*sim.Result) float64, wins better, other func(*sim.Result) float64, otherWins better) (all []string) {
	for _, weir := range g.order {
		for _, k := range g.order {
			if weir.policy != policy.Weir || k.policy == policy.Weir || k.workload != weir.workload || k.load != weir.load {
				continue
			}
			a, b, c, d := g.median(k, one), g.median(weir, one), g.median(k, other), g.median(weir, other)
			if (wins(a, b) || otherWins(c, d)) && !wins(b, a) && !otherWins(d, c) {
				all = append(all, fmt.Sprintf("%s at %g/s by %s", k.workload, k.load, k.policy))
			}
		}
	}
	return all
}

// percents is a column of two shares, interactive and bulk.
func percents(name string, of func(sim.Figures) float64) lessonColumn {
	return lessonColumn{name, func(g *simGroups, k simKey) string {
		return fmt.Sprintf("%.1f / %.1f", g.median(k, inClass("interactive", of)), g.median(k, inClass("bulk", of)))
	}}
}
