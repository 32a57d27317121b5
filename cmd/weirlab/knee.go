package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/weirproxy/weir/pkg/lab/policy"
)

// kneeTable is one table of docs/knee.md: what is run, a row for each of it, and what comes of it.
type kneeTable struct {
	title, about string
	runs         []simOptions
	columns      []lessonColumn
	says         func(g *simGroups) string // a sentence on the table; nil: none
	check        func(g *simGroups) []verdict
	hidden       []string // workloads that others are compared with, without rows of their own
}

// gateControls are what weir's gate and knee are compared with, all before weir's own pick.
var gateControls = []string{
	policy.Weir + "/queue=fifo", policy.Weir + "/queue=none",
	policy.Weir + "/gate=static-shed", policy.Weir + "/gate=static-hold", policy.Weir + "/gate=probabilistic",
}

// withControls is weir and they.
var withControls = append([]string{policy.Weir}, gateControls...)

// runKnee measures what the gate and the knee are worth and writes it down.
func runKnee(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("weirlab knee", flag.ContinueOnError)
	fs.SetOutput(stderr)
	doc := fs.String("doc", "", "write into this `file`, and not to stdout")
	if err := parse(fs, args); err != nil {
		return err
	}
	if err := canWrite(*doc); err != nil {
		return err
	}
	text := bytes.NewBufferString(kneeHead)
	for _, t := range kneeTables() {
		fmt.Fprintf(stderr, "%s\n", t.title)
		m := &measurer{ctx: ctx, stderr: stderr}
		g := t.run(m, t.runs)
		if m.err != nil {
			return m.err
		}
		t.write(text, g)
	}
	return writeDoc(*doc, stdout, text.Bytes())
}

// run simulates some of a table's runs.
func (t *kneeTable) run(m *measurer, runs []simOptions) *simGroups {
	all := group(nil)
	for _, o := range runs {
		g := m.run(o)
		for _, k := range g.order {
			if all.of[k] == nil {
				all.order = append(all.order, k)
			}
			all.of[k] = g.of[k]
		}
	}
	return all
}

func (t *kneeTable) write(w io.Writer, g *simGroups) {
	fmt.Fprintf(w, "\n## %s\n%s\n", t.title, t.about)
	if t.says != nil {
		fmt.Fprintf(w, "%s\n", t.says(g))
	}
	fmt.Fprintln(w)
	writeHead(w, t.columns)
	for _, k := range g.order {
		if !slices.Contains(t.hidden, k.workload) {
			fmt.Fprint(w, rowOf(t.columns, g, k))
		}
	}
	if t.check == nil {
		return
	}
	fmt.Fprint(w, "\n| at | is to be | is | |\n|---|---|---|---|\n")
	for _, v := range t.check(g) {
		fmt.Fprint(w, v.row())
	}
}

// kneeHead says what the policies are.
const kneeHead = `# The gate and the knee, beside others

Made by ` + "`make knee`" + `. Simulated: the code that serves, over step models of vLLM replicas in virtual time ([calibration](calibration.md)). Medians of the seeds,
5 minutes of arrivals each, of which the first minute only fills the caches. Times are seconds of model time; TTFT counts from the intended arrival. W7 and W8 are interactive requests of 2,000 prompt
tokens beside bulk of 23,000 (` + "`bin/weirlab profile -workload W7`" + ` tells more), on 8 replicas, 32B where nothing else is said.

All policies pick by weir's own cost and differ in who may go when, so that a row differs from weir's by its gate alone:

| policy | who goes when |
|---|---|
| weir | by class and deadline, each to its best replica below the knee; bulk to few replicas at once |
| weir/queue=fifo | first come, first served, each to its best replica below the knee: no classes, nobody is bulk |
| weir/queue=none | no gate: at once |
| weir/gate=static-shed | bulk is refused while the pool is saturated: mean over replicas of max(waiting/5, KV in use/0.8) at 1 or more. The Gateway API inference extension's detector, and what the llm-d router does without flow control |
| weir/gate=static-hold | everybody is held while it is, then goes by class and arrival: the llm-d router's flow control |
| weir/gate=probabilistic | bulk is refused with the probability min(300*s^5, 1) at that saturation s: the llm-d router's probabilistic admitter with its own constants |
| weir/max_backlog=T | weir with a fixed knee: T instead of the computed tau |
| weir/rule=none | weir without the knee: only bulk waits |

Pages are read once a second, as weir reads them and not each 50 ms as that router does; where the detector knows of requests in flight that no page shows yet, it counts them as waiting, as the llm-d router's does.
shed: refused at once. late: refused past the class's deadline, or answered with a first token past it (interactive 30 s, bulk 5 minutes, as weir comes).
**Bold**: a control is better by more than 2 %.
`
