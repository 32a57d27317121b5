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

	"github.com/weirproxy/weir/pkg/lab/policy"
)

// benchQuick and benchRest are the workloads of the table, and those that a full one has besides. The ladder is what the
// model is calibrated with, and W8 is W7 at 21 loads: neither tells policies apart better.
var (
	benchQuick = []string{"W3", "W3-fresh", "W5-19", "W5-35", "W5-47", "W6", "W7", "W10"}
	benchRest  = []string{"W3b", "W3b-fresh", "W5-73", "W6-chat", "W6-code", "W7-0", "W7-0.5", "W7-1", "W7-2", "W7-burst"}
)

// A quick table must be there within five minutes on two cores.
const (
	benchQuickSeeds  = 2
	benchQuickLength = 5 * time.Minute
	benchFullSeeds   = 5
)

// benchTraces are the published traces that are replayed where the folder given has them.
var benchTraces = []struct {
	file, name, profile string
	replicas            int
	kv                  []int // tokens, none for the profile's
	speeds              []float64
}{
	{"mooncake_conversation.jsonl", "W4 x speed, 0.3M cache", "32B", 8, nil, []float64{1, 1.75, 2.25}},
	{"mooncake_conversation.jsonl", "W4 x speed, 3M cache", "32B", 8, []int{3_000_000}, []float64{1, 2, 2.5}},
	{"azure_2023_conv.csv", "Azure trace x speed", "8B", 4, nil, []float64{4, 8, 11}},
}

// runBenchPolicy compares weir with every other policy and writes README's table.
func runBenchPolicy(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("weirlab bench-policy", flag.ContinueOnError)
	fs.SetOutput(stderr)
	full := fs.Bool("full", false, fmt.Sprintf("%d seeds at full length and all workloads, not %d seeds of %v", benchFullSeeds, benchQuickSeeds, benchQuickLength))
	traces := fs.String("traces", "", "also replay the published traces that lie in this `folder`")
	readme := fs.String("readme", "", "write the table into this `file`, between its two marks, and not to stdout")
	if err := parse(fs, args); err != nil {
		return err
	}
	cells, err := benchCells(*full, *traces)
	if err != nil {
		return err
	}
	var rows []simRow
	err = runCells(ctx, cells, stderr, func(r []simRow) error { rows = append(rows, r...); return nil })
	if err != nil {
		return err
	}
	var text bytes.Buffer
	writeBench(&text, rows)
	if *readme == "" {
		_, err = stdout.Write(text.Bytes())
		return err
	}
	return replaceInFile(*readme, benchMarks, text.String())
}

// benchCells is all runs.
func benchCells(full bool, traces string) (cells []simCell, err error) {
	o := simOptions{workloads: benchQuick, policies: policy.Names(), seeds: benchQuickSeeds, length: benchQuickLength, routers: 1}
	if full {
		o.workloads, o.seeds, o.length = slices.Concat(benchQuick, benchRest), benchFullSeeds, 0
	}
	if cells, err = o.cells(); err != nil || traces == "" {
		return cells, err
	}
	o.length = 0
	for _, t := range benchTraces {
		o.trace, o.profile, o.replicas, o.kv, o.loads = filepath.Join(traces, t.file), t.profile, t.replicas, t.kv, t.speeds
		more, err := o.cells()
		if err != nil {
			return nil, err
		}
		for i := range more {
			more[i].workload.Name = t.name
		}
		cells = append(cells, more...)
	}
	return cells, nil
}

// marks are the two lines of a file between which text is made by a command.
type marks struct{ begin, end string }

var benchMarks = marks{"<!-- made by make bench-policy -->\n", "<!-- end of what make bench-policy made -->\n"}

// replaceInFile puts text between the marks of a file.
func replaceInFile(file string, m marks, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(old), m.begin)
	_, after, ok2 := strings.Cut(rest, m.end)
	if !ok || !ok2 {
		return fmt.Errorf("%s: it has not the lines %q and %q, in this order", file, m.begin, m.end)
	}
	return os.WriteFile(file, []byte(before+m.begin+text+m.end+after), 0o644)
}
