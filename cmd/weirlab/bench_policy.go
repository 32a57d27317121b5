package main

import (
	"bytes"
	"context"
	"errors"
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

// benchQuick and benchRest are the workloads of README's table, and those that a full one has besides. The ladder is what the
// model is calibrated with, and W8 is W7 at 21 loads: neither tells policies apart better.
var (
	benchQuick = []string{"W3", "W3-fresh", "W5-19", "W5-35", "W5-47", "W6", "W7", "W10"}
	benchRest  = []string{"W3b", "W3b-fresh", "W5-73", "W6-chat", "W6-code", "W7-0", "W7-0.5", "W7-1", "W7-2", "W7-burst"}
)

const (
	// benchLength and benchQuickSeeds have a quick table there within five minutes on two cores.
	benchLength     = 5 * time.Minute
	benchQuickSeeds = 2
	// benchFullSeeds makes a full one's medians those of a middle run.
	benchFullSeeds = 5
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
	full := fs.Bool("full", false, fmt.Sprintf("%d seeds, not %d, and all workloads", benchFullSeeds, benchQuickSeeds))
	traces := fs.String("traces", "", "also replay the published traces that lie in this `folder`")
	readme := fs.String("readme", "", "write the table into this `file`, between its two marks, and not to stdout: of a full one the workloads that a quick one has")
	doc := fs.String("doc", "", "write the whole table of a full one into this `file`")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *doc != "" && !*full {
		return errors.New("-doc is for the table of -full")
	}
	if err := canWrite(*doc, *readme); err != nil { // before half an hour, not after it
		return err
	}
	if _, _, err := cut(*readme, benchMarks); *readme != "" && err != nil {
		return err
	}
	for _, t := range benchTraces {
		if _, err := os.Stat(filepath.Join(*traces, t.file)); *traces != "" && err != nil {
			return err
		}
	}
	cells, err := benchCells(*full, *traces)
	if err != nil {
		return err
	}
	rows, err := allRows(ctx, cells, stderr)
	if err != nil {
		return err
	}
	if *doc != "" {
		if err := os.WriteFile(*doc, []byte(benchHead+benchText(rows)), 0o644); err != nil {
			return err
		}
	}
	if *readme == "" {
		_, err = io.WriteString(stdout, benchText(rows))
		return err
	}
	if *full {
		rows = slices.DeleteFunc(rows, func(r simRow) bool { return !slices.Contains(benchQuick, r.cell.workload.Name) })
	}
	return replaceInFile(*readme, benchMarks, benchText(rows))
}

// benchText is the table.
func benchText(rows []simRow) string {
	var text bytes.Buffer
	writeBench(&text, rows)
	return text.String()
}

const benchHead = `# weir and every rule that it is compared with

Made by ` + "`make bench-policy FULL=1 TRACES=DIR`" + `, on all workloads. Simulated: the code that serves, over step models of vLLM replicas in virtual time ([calibration](calibration.md)).

`

// benchCells is all runs.
func benchCells(full bool, traces string) (cells []simCell, err error) {
	o := simOptions{workloads: benchQuick, policies: policy.Names(), seeds: benchQuickSeeds, length: benchLength, routers: 1}
	if full {
		o.workloads, o.seeds = slices.Concat(benchQuick, benchRest), benchFullSeeds
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
	before, after, err := cut(file, m)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(before+m.begin+text+m.end+after), 0o644)
}

// cut is what stands before and after the marks in a file.
func cut(file string, m marks) (before, after string, err error) {
	old, err := os.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	before, rest, ok := strings.Cut(string(old), m.begin)
	_, after, ok2 := strings.Cut(rest, m.end)
	if !ok || !ok2 {
		return "", "", fmt.Errorf("%s: it has not the lines %q and %q, in this order", file, m.begin, m.end)
	}
	return before, after, nil
}

// canWrite reports the first of the files, as far as they have names, that cannot be written.
func canWrite(files ...string) error {
	for _, name := range files {
		if name == "" {
			continue
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// writeDoc writes a text into the file, or to stdout if that has no name.
func writeDoc(file string, stdout io.Writer, text []byte) error {
	if file == "" {
		_, err := stdout.Write(text)
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
