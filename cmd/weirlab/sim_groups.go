package main

import (
	"cmp"
	"slices"

	"github.com/weirproxy/weir/pkg/lab/sim"
)

// simKey is what the rows of one line of the table have in common.
type simKey struct {
	workload string
	load     float64
	policy   string
}

// simGroups is results by what they have in common but the seed.
type simGroups struct {
	order []simKey // as they came
	of    map[simKey][]*sim.Result
}

func group(rows []simRow) *simGroups {
	g := &simGroups{of: map[simKey][]*sim.Result{}}
	for _, r := range rows {
		k := simKey{r.cell.workload.Name, r.load, r.cell.policy}
		if g.of[k] == nil {
			g.order = append(g.order, k)
		}
		g.of[k] = append(g.of[k], r.result)
	}
	return g
}

// distinct is the different values of a part of the keys, as they came.
func distinct[T comparable](g *simGroups, part func(simKey) (T, bool)) (all []T) {
	for _, k := range g.order {
		if t, ok := part(k); ok && !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

func (g *simGroups) workloads() []string {
	return distinct(g, func(k simKey) (string, bool) { return k.workload, true })
}

func (g *simGroups) policies(workload string) []string {
	return distinct(g, func(k simKey) (string, bool) { return k.policy, k.workload == workload })
}

func (g *simGroups) loads(workload string) []float64 {
	return distinct(g, func(k simKey) (float64, bool) { return k.load, k.workload == workload })
}

// median is that of a figure over the seeds, 0 where nothing ran.
func (g *simGroups) median(k simKey, of func(*sim.Result) float64) float64 {
	if len(g.of[k]) == 0 {
		return 0
	}
	return median(values(g.of[k], of))
}

// curve is a policy's figure over the load.
func (g *simGroups) curve(workload, policy string, of func(*sim.Result) float64) curve {
	c := curve{name: policy, x: g.loads(workload)}
	slices.Sort(c.x)
	for _, load := range c.x {
		c.y = append(c.y, g.median(simKey{workload, load, policy}, of))
	}
	return c
}

func figMean(f sim.Figures) float64 { return f.TTFTMean }
func figP99(f sim.Figures) float64  { return f.TTFTP99 }

// Figures of a run that are shown in several places.
var (
	ttftMean       = func(r *sim.Result) float64 { return r.TTFTMean }
	ttftP99        = func(r *sim.Result) float64 { return r.TTFTP99 }
	hitPercent     = func(r *sim.Result) float64 { return 100 * r.HitRate }
	ceilingPercent = func(r *sim.Result) float64 { return 100 * r.Ceiling }
)

// values are a figure's, in order.
func values(g []*sim.Result, f func(*sim.Result) float64) []float64 {
	all := make([]float64, len(g))
	for i, r := range g {
		all[i] = f(r)
	}
	slices.SortFunc(all, cmp.Compare)
	return all
}

// median is the middle of sorted, or the mean of its two middles.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
