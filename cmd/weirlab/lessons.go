package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// lesson is one of the six things that weir is built on (DESIGN.md, section 1), as a small measurement.
type lesson struct {
	title     string
	file      string // of the plot, without its ending
	workloads []string
	loads     []float64 // nil: the workloads' own
	policies  []string
	columns   []lessonColumn
	says      func(g *simGroups) string
	chart     func(g *simGroups) *chart
}

// lessonColumn is one figure of a row: a workload at a load under a policy.
type lessonColumn struct {
	name string
	of   func(g *simGroups, k simKey) string
}

// All lessons are measured alike: what benchmarks ask for at least.
const (
	lessonSeeds  = 5
	lessonLength = 5 * time.Minute
)

// runLessons measures the lessons and writes them down.
func runLessons(ctx context.Context, args []string, _, stderr io.Writer) error {
	fs := flag.NewFlagSet("weirlab lessons", flag.ContinueOnError)
	fs.SetOutput(stderr)
	docs := fs.String("docs", "docs", "write lessons.md, and lessons/ with the plots, into this `folder`")
	if err := parse(fs, args); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(*docs, "lessons"), 0o755); err != nil {
		return err
	}
	var doc bytes.Buffer
	doc.WriteString(lessonsHead)
	for i := range lessons {
		l := &lessons[i]
		fmt.Fprintf(stderr, "%s\n", l.title)
		groups, err := l.run(ctx, stderr, func(simCell) bool { return true })
		if err != nil {
			return err
		}
		l.write(&doc, groups)
		if err := l.chart(groups).write(filepath.Join(*docs, "lessons", l.file+".svg")); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(*docs, "lessons.md"), doc.Bytes(), 0o644)
}

// run simulates the cells of a lesson that are wanted.
func (l *lesson) run(ctx context.Context, stderr io.Writer, want func(simCell) bool) (*simGroups, error) {
	o := simOptions{workloads: l.workloads, policies: l.policies, loads: l.loads, seeds: lessonSeeds, length: lessonLength, routers: 1}
	cells, err := o.cells()
	if err != nil {
		return nil, err
	}
	cells = slices.DeleteFunc(cells, func(c simCell) bool { return !want(c) })
	rows, err := allRows(ctx, cells, stderr)
	return group(rows), err
}

func (l *lesson) write(w io.Writer, g *simGroups) {
	fmt.Fprintf(w, "\n## %s\n%s\n\n![%s](lessons/%s.svg)\n\n", l.title, l.says(g), l.title, l.file)
	writeHead(w, l.columns)
	for _, k := range g.order {
		fmt.Fprint(w, rowOf(l.columns, g, k))
	}
	fmt.Fprintf(w, "\n    %s\n", l.command())
}

// writeHead begins a table.
func writeHead(w io.Writer, columns []lessonColumn) {
	fmt.Fprint(w, "| workload | requests/s | policy |")
	for _, c := range columns {
		fmt.Fprintf(w, " %s |", c.name)
	}
	fmt.Fprintf(w, "\n|%s\n", strings.Repeat("---|", 3+len(columns)))
}

// rowOf is one line of it.
func rowOf(columns []lessonColumn, g *simGroups, k simKey) string {
	var line strings.Builder
	fmt.Fprintf(&line, "| %s | %g | %s |", k.workload, k.load, k.policy)
	for _, c := range columns {
		fmt.Fprintf(&line, " %s |", c.of(g, k))
	}
	return line.String() + "\n"
}

// command is what prints the same figures, and more of them.
func (l *lesson) command() string {
	loads := ""
	if l.loads != nil {
		loads = " -load " + strings.Trim(strings.ReplaceAll(fmt.Sprint(l.loads), " ", ","), "[]")
	}
	return fmt.Sprintf("bin/weirlab sim -workload %s -policy %s%s -seeds %d -length %.0fm",
		strings.Join(l.workloads, ","), strings.Join(l.policies, ","), loads, lessonSeeds, lessonLength.Minutes())
}

const lessonsHead = `# Six lessons, measured

Made by ` + "`make lessons`" + `. Simulated: the code that serves, over step models of vLLM replicas in virtual time ([calibration](calibration.md)).
Times are seconds of model time; TTFT counts from the intended arrival. Each figure is the median of 5 seeds, 5 minutes of arrivals each, of which the first (of W6, the first two) only fill the
caches. A policy ` + "`weir/KEY=VALUE`" + ` is weir with that line of its policy changed. W7 is small interactive requests beside bulk ones
with 23,000 prompt tokens, W5 questions about documents, W6 conversations, W10 lengths of the Azure trace without any reuse (` + "`bin/weirlab profile -workload W7`" + ` tells more).
`
