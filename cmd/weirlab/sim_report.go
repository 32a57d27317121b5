package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/weirproxy/weir/pkg/lab/sim"
)

// simRow is one run, or one stage of it.
type simRow struct {
	cell   *simCell
	load   float64
	result *sim.Result
}

// simJSON is a row as a line of JSON. Times are seconds, rates per second of model time.
type simJSON struct {
	Workload   string              `json:"workload"`
	Policy     string              `json:"policy"`
	Load       float64             `json:"load"`
	Seed       uint64              `json:"seed"`
	Replicas   int                 `json:"replicas"`
	TTFTMean   float64             `json:"ttft_mean"`
	TTFTP50    float64             `json:"ttft_p50"`
	TTFTP90    float64             `json:"ttft_p90"`
	TTFTP99    float64             `json:"ttft_p99"`
	TPOTMean   float64             `json:"tpot_mean"`
	E2EMean    float64             `json:"e2e_mean"`
	HitRate    float64             `json:"hit_rate"`
	Ceiling    float64             `json:"ceiling"`
	Skew       float64             `json:"skew"`
	Throughput float64             `json:"throughput"`
	Goodput    float64             `json:"goodput"`
	Shed       map[string]int      `json:"shed"`            // by class: refused, and not late
	Late       map[string]int      `json:"late"`            // by class
	Lost       int                 `json:"lost,omitempty"`  // died with their replica
	Tried      int                 `json:"tried,omitempty"` // went first to a replica that was dead for a second
	Classes    map[string]simClass `json:"classes,omitempty"`
}

// simClass is one class of several.
type simClass struct {
	TTFTMean   float64 `json:"ttft_mean"`
	TTFTP50    float64 `json:"ttft_p50"`
	TTFTP99    float64 `json:"ttft_p99"`
	TPOTMean   float64 `json:"tpot_mean"`
	Throughput float64 `json:"throughput"`
	Goodput    float64 `json:"goodput"`
}

func writeJSON(w io.Writer, rows []simRow) error {
	for _, r := range rows {
		f := r.result
		line := simJSON{
			Workload: r.cell.workload.Name, Policy: r.cell.policy, Load: r.load, Seed: r.cell.seed, Replicas: r.cell.cfg.Replicas,
			TTFTMean: f.TTFTMean, TTFTP50: f.TTFTP50, TTFTP90: f.TTFTP90, TTFTP99: f.TTFTP99, TPOTMean: f.TPOTMean, E2EMean: f.E2EMean,
			HitRate: f.HitRate, Ceiling: f.Ceiling, Skew: f.Skew, Throughput: f.Throughput, Goodput: f.Goodput,
			Shed: map[string]int{}, Late: map[string]int{}, Lost: f.Lost, Tried: f.Tried,
		}
		for name, c := range f.Classes {
			line.Shed[name], line.Late[name] = c.Refused, c.Late
			if len(f.Classes) > 1 {
				if line.Classes == nil {
					line.Classes = map[string]simClass{}
				}
				line.Classes[name] = simClass{c.TTFTMean, c.TTFTP50, c.TTFTP99, c.TPOTMean, c.Throughput, c.Goodput}
			}
		}
		text, err := json.Marshal(line)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n", text); err != nil {
			return err
		}
	}
	return nil
}

// simTable gathers rows into medians over seeds.
type simTable struct {
	w    io.Writer
	rows []simRow
}

// columns are the table's, with how each is worked out of one run.
var columns = []struct {
	name   string
	spread bool // lowest and highest of the seeds, too
	of     func(*sim.Result) float64
	format func(float64) string
}{
	{"TTFT mean", true, ttftMean, sim.Short},
	{"p50", false, func(r *sim.Result) float64 { return r.TTFTP50 }, sim.Short},
	{"p90", false, func(r *sim.Result) float64 { return r.TTFTP90 }, sim.Short},
	{"p99", true, ttftP99, sim.Short},
	{"TPOT ms", false, func(r *sim.Result) float64 { return 1000 * r.TPOTMean }, number("%.1f")},
	{"e2e", false, func(r *sim.Result) float64 { return r.E2EMean }, sim.Short},
	{"hit %", false, hitPercent, number("%.1f")},
	{"ceiling %", false, ceilingPercent, number("%.1f")},
	{"skew", false, func(r *sim.Result) float64 { return r.Skew }, number("%.2f")},
	{"answers/s", false, func(r *sim.Result) float64 { return r.Throughput }, number("%.2f")},
	{"in time/s", false, func(r *sim.Result) float64 { return r.Goodput }, number("%.2f")},
	{"late", false, func(r *sim.Result) float64 { return float64(r.Late) }, number("%.0f")},
	{"refused", false, func(r *sim.Result) float64 { return float64(r.Refused) }, number("%.0f")},
}

func number(format string) func(float64) string {
	return func(x float64) string { return fmt.Sprintf(format, x) }
}

// print writes a line for each workload, load and policy, and one for each workload below.
func (t *simTable) print() error {
	fmt.Fprint(t.w, "Simulated (step model, virtual time). Medians of the seeds, lowest and highest in brackets. TTFT and e2e in\nseconds from the intended arrival.\n\n")
	w := tabwriter.NewWriter(t.w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "workload\tload\tpolicy\t")
	for _, c := range columns {
		fmt.Fprintf(w, "%s\t", c.name)
	}
	fmt.Fprintln(w)
	groups := group(t.rows)
	for _, k := range groups.order {
		fmt.Fprintf(w, "%s\t%g\t%s\t", k.workload, k.load, k.policy)
		for _, c := range columns {
			all := values(groups.of[k], c.of)
			fmt.Fprint(w, c.format(median(all)))
			if c.spread && len(all) > 1 {
				fmt.Fprintf(w, " (%s-%s)", c.format(all[0]), c.format(all[len(all)-1]))
			}
			fmt.Fprint(w, "\t")
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return t.printPools()
}

// printPools says what each workload ran on, and how its texts compare to what the replicas can hold.
func (t *simTable) printPools() error {
	fmt.Fprintln(t.w)
	last := map[string]simRow{}
	var order []string
	for _, r := range t.rows {
		name := r.cell.workload.Name
		if _, ok := last[name]; !ok {
			order = append(order, name)
		}
		if r.result.Distinct >= last[name].distinct() {
			last[name] = r
		}
	}
	for _, name := range order {
		r := last[name]
		c := r.cell
		all := float64(c.cfg.KVTokens()) / 1e6
		if _, err := fmt.Fprintf(t.w, "%s: %d replicas %s that cache %.2fM tokens together, %d router(s); texts of up to %.2fM tokens; the first %v left out.\n",
			name, c.cfg.Replicas, hardware(&c.cfg), all, c.cfg.Routers, float64(r.distinct())/1e6, c.span().Warmup); err != nil {
			return err
		}
	}
	return nil
}

// hardware names what the replicas are: "8B", or "2 x 8B and 1 x 32B".
func hardware(cfg *sim.Config) string {
	var names []string
	count := map[string]int{}
	for _, p := range cfg.Each {
		if count[p.Name] == 0 {
			names = append(names, p.Name)
		}
		count[p.Name]++
	}
	if len(names) == 1 {
		return names[0]
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%d x %s", count[name], name)
	}
	return strings.Join(names, " and ")
}

func (r simRow) distinct() int64 {
	if r.result == nil {
		return 0
	}
	return r.result.Distinct
}
