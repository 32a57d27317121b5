package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/sim"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// made is a run that came to these figures.
func made(name string, load float64, policy string, f sim.Figures, classes ...string) simRow {
	r := &sim.Result{Figures: f, Classes: map[string]sim.Figures{}}
	for i, c := range classes {
		g := f
		g.TTFTMean += float64(i)
		r.Classes[c] = g
	}
	return simRow{cell: &simCell{workload: workload.Info{Name: name}, policy: policy}, load: load, result: r}
}

// TestBenchTable: what is better by more than 2 % is marked and stays, the oracle is no rule, classes have lines of their own.
func TestBenchTable(t *testing.T) {
	f := func(mean, p99, hit, ceiling float64) sim.Figures {
		return sim.Figures{Arrived: 200, TTFTMean: mean, TTFTP99: p99, HitRate: hit, Ceiling: ceiling}
	}
	late := f(1, 2, 0, 0)
	late.Late, late.Refused = 2, 1
	var rows []simRow
	for _, p := range []struct {
		name string
		figs [2]sim.Figures
	}{
		{"weir", [2]sim.Figures{f(1, 2, 0.6, 0.8), late}},
		{"round-robin", [2]sim.Figures{f(5, 9, 0, 0.8), f(5, 9, 0, 0)}},
		{"sticky", [2]sim.Figures{f(0.99, 1.5, 0, 0.8), f(0.97, 3, 0, 0)}},
		{"lmetric", [2]sim.Figures{f(2, 1.25, 0, 0.8), f(9, 9, 0, 0)}},
		{"oracle", [2]sim.Figures{f(0.1, 0.2, 0, 0.8), f(0.1, 0.2, 0, 0)}},
	} {
		rows = append(rows, made("A", 3, p.name, p.figs[0], "interactive"), made("B", 3, p.name, p.figs[1], "bulk", "interactive"))
	}
	var out bytes.Buffer
	writeBench(&out, rows)
	for _, want := range []string{
		"| A | 3 | 1.00 / **2.00** | 5.00 / 9.00 | sticky 0.990 / lmetric 1.25 | 0.100 / 0.200 | 0.75 |\n",
		"| B interactive | 3 | 2.00 / 2.00 (1.5 % refused) | 6.00 / 9.00 | sticky 1.97 / sticky 3.00 | 1.10 / 0.200 | - |\n| B bulk | 3 | **1.00** / 2.00 (1.5 %",
		"in 2 of 6 cells", "of 1 seeds", "of 3; hits",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// benchBegins are the beginnings of the cells' lines, each once: W7 and its kin have one for each class, but W7-0 has no bulk.
func benchBegins(cells []simCell) (lines []string) {
	for _, c := range cells {
		names := []string{c.workload.Name}
		if strings.HasPrefix(names[0], "W7") && names[0] != "W7-0" {
			names = []string{names[0] + " interactive", names[0] + " bulk"}
		}
		for _, name := range names {
			lines = append(lines, fmt.Sprintf("\n| %s | %g | ", name, c.load))
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// TestBenchInREADME: README has a line for each workload and load of the quick table.
func TestBenchInREADME(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), benchMarks.begin)
	table, _, ok := strings.Cut(rest, benchMarks.end)
	if !ok {
		t.Fatal("README.md has not the marks of make bench-policy")
	}
	cells, err := benchCells(false, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range benchBegins(cells) {
		if !strings.Contains(table, want) {
			t.Errorf("README.md has no line %q: run make bench-policy", want)
		}
	}
	if want := len(benchQuick) * 3 * benchQuickSeeds * len(policy.Names()); len(cells) != want {
		t.Errorf("%d runs, want %d", len(cells), want)
	}
	full, err := benchCells(true, "")
	if err != nil || len(full) < 4*len(cells) {
		t.Errorf("%d runs in full, %v", len(full), err)
	}
	traced, err := benchCells(false, "somewhere")
	if err != nil || !slices.ContainsFunc(traced, func(c simCell) bool { return c.trace == filepath.Join("somewhere", "azure_2023_conv.csv") }) {
		t.Errorf("no trace in %d runs, %v", len(traced), err)
	}
}

func TestReplaceInFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.md")
	m := marks{"<b>\n", "<e>\n"}
	for _, c := range []struct{ old, want string }{
		{"x\n<b>\nold\n<e>\ny\n", "x\n<b>\nnew\n<e>\ny\n"},
		{"<b>\n<e>\n", "<b>\nnew\n<e>\n"},
		{"<e>\n<b>\n", ""},
		{"x\n", ""},
	} {
		if err := os.WriteFile(file, []byte(c.old), 0o600); err != nil {
			t.Fatal(err)
		}
		err := replaceInFile(file, m, "new\n")
		got, _ := os.ReadFile(file)
		if want := c.want; (err == nil) != (want != "") || want != "" && string(got) != want || want == "" && string(got) != c.old {
			t.Errorf("%q: %q, %v", c.old, got, err)
		}
	}
}

// TestBenchRefusesEarly: what cannot be read or written is told before anything runs.
func TestBenchRefusesEarly(t *testing.T) {
	unmarked := filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(unmarked, []byte("# weir\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, says := range map[string]string{
		"-doc policies.md":                        "-doc is for the table of -full",
		"-full -doc /nowhere/policies.md":         "no such file",
		"-readme " + unmarked:                     "it has not the lines",
		"-full -traces " + filepath.Dir(unmarked): "mooncake_conversation.jsonl: no such file",
	} {
		if err := runBenchPolicy(t.Context(), strings.Fields(args), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", args, err, says)
		}
	}
	if err := runTargets(t.Context(), []string{"-traces", filepath.Dir(unmarked)}, io.Discard, io.Discard); err == nil {
		t.Error("targets without the trace that it is to replay")
	}
}
