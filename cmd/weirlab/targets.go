package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/sim"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// target is what weir is to reach on a workload, and how that is measured.
type target struct {
	title string
	about string // what is compared, and what stands in the way where weir falls short
	trace string // the file that it replays; empty: none
	check func(m *measurer) []verdict
}

// verdict is one figure beside what it is to be.
type verdict struct {
	at, want, got string
	met           bool
}

const (
	targetSeeds  = 3
	targetLength = 5 * time.Minute
)

// published are the rules that weir is measured against.
func published() []string {
	return slices.DeleteFunc(policy.Names(), func(name string) bool { return slices.Contains(benchOthers, name) })
}

// runTargets measures the targets and writes them down.
func runTargets(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("weirlab targets", flag.ContinueOnError)
	fs.SetOutput(stderr)
	traces := fs.String("traces", "", "also measure on the published traces that lie in this `folder`")
	doc := fs.String("doc", "", "write into this `file`, and not to stdout")
	if err := parse(fs, args); err != nil {
		return err
	}
	if err := canWrite(*doc); err != nil {
		return err
	}
	for _, t := range targets {
		if t.trace == "" || *traces == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(*traces, t.trace)); err != nil {
			return err
		}
	}
	text := bytes.NewBufferString(targetsHead)
	for i := range targets {
		t := &targets[i]
		m := &measurer{ctx: ctx, stderr: stderr}
		if t.trace != "" {
			if *traces == "" {
				fmt.Fprintf(text, "\n## %s\n%s Not measured here: it takes TRACES=DIR.\n", t.title, t.about)
				continue
			}
			m.trace = filepath.Join(*traces, t.trace)
		}
		fmt.Fprintf(stderr, "%s\n", t.title)
		verdicts := t.check(m)
		if m.err != nil {
			return m.err
		}
		t.write(text, verdicts)
	}
	return writeDoc(*doc, stdout, text.Bytes())
}

func (t *target) write(w io.Writer, verdicts []verdict) {
	fmt.Fprintf(w, "\n## %s\n%s\n\n| at | is to be | is | |\n|---|---|---|---|\n", t.title, t.about)
	for _, v := range verdicts {
		fmt.Fprint(w, v.row())
	}
}

func (v verdict) row() string {
	missed := ""
	if !v.met {
		missed = "**missed**"
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", v.at, v.want, v.got, missed)
}

// atMost and atLeast compare a figure with its bound.
func atMost(at string, got, bound float64) verdict {
	return verdict{at, fmt.Sprintf("at most %g", bound), fmt.Sprintf("%.3g", got), got <= bound}
}

func atLeast(at string, got, bound float64) verdict {
	return verdict{at, fmt.Sprintf("at least %g", bound), fmt.Sprintf("%.3g", got), got >= bound}
}

// measurer runs simulations for a target. After the first error it runs nothing, and every figure is 0.
type measurer struct {
	ctx    context.Context
	stderr io.Writer
	trace  string
	err    error
}

// run simulates what the options ask for, with what all targets have in common where they are silent.
func (m *measurer) run(o simOptions) *simGroups {
	o.trace = m.trace
	o.seeds, o.routers = cmp.Or(o.seeds, targetSeeds), max(o.routers, 1)
	if o.length == 0 && o.trace == "" {
		o.length = targetLength
	}
	if o.trace != "" {
		o.workloads = []string{traced}
	}
	if m.err != nil {
		return group(nil)
	}
	cells, err := o.cells()
	var rows []simRow
	if err == nil {
		rows, err = allRows(m.ctx, cells, m.stderr)
	}
	m.err = err
	return group(rows)
}

// kneeP99 is the p99 of TTFT, in seconds, that a load is held with.
const kneeP99 = 1.0

// knee is the highest of loads, which rise, that a policy holds; 0 for none.
func (m *measurer) knee(workload, policy string, loads []float64) float64 {
	n, _ := slices.BinarySearchFunc(loads, true, func(load float64, _ bool) int {
		g := m.run(simOptions{workloads: []string{workload}, policies: []string{policy}, loads: []float64{load}, length: 2 * targetLength})
		if g.median(simKey{workload, load, policy}, ttftP99) <= kneeP99 {
			return -1
		}
		return 1
	})
	if n == 0 {
		return 0
	}
	return loads[n-1]
}

// quarters lists the numbers from the first to the last by a quarter.
func quarters(from, to float64) (all []float64) {
	for x := from; x <= to; x += 0.25 {
		all = append(all, x)
	}
	return all
}

// over is a figure of weir's over that of another policy, at one load.
func (g *simGroups) over(workload string, load float64, other string, of func(*sim.Result) float64) float64 {
	return g.median(simKey{workload, load, policy.Weir}, of) / g.median(simKey{workload, load, other}, of)
}

// bestOf is the policy with the lowest figure, of some.
func (g *simGroups) bestOf(policies []string, workload string, load float64, of func(*sim.Result) float64) (best string) {
	for _, p := range policies {
		if best == "" || g.median(simKey{workload, load, p}, of) < g.median(simKey{workload, load, best}, of) {
			best = p
		}
	}
	return best
}

const targetsHead = `# What weir is to reach, and what it reaches

Made by ` + "`make targets`" + `. Simulated: the code that serves, over step models of vLLM replicas in virtual time ([calibration](calibration.md)).
Medians of 3 seeds where nothing else is said, 5 minutes of arrivals each, of which the first (of W6 and W9, the first two) only fill the caches; traces whole. "x/y" is a ratio of TTFT means, or of p99 where it says so.
`

// loads are a workload's own.
func (m *measurer) loads(name string) []float64 {
	i, err := workload.Lookup(name)
	if m.err == nil {
		m.err = err
	}
	return i.Loads
}
