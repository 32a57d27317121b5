package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/lab/load"
)

// cells returns the cells of each table by the names of its rows. A table begins with its columns and ends with an empty
// line.
func cells(t *testing.T, text string, columns ...string) (tables []map[string][]string) {
	t.Helper()
	open := false
	for line := range strings.Lines(text + "\n") {
		switch f := strings.Join(strings.Fields(line), " "); {
		case len(tables) < len(columns) && f == columns[len(tables)]:
			tables = append(tables, map[string][]string{})
			open = true
		case f == "":
			open = false
		case open:
			tables[len(tables)-1][strings.TrimSpace(line[:34])] = strings.Fields(line[34:])
		}
	}
	if len(tables) != len(columns) {
		t.Fatalf("%d tables, want %d, in\n%s", len(tables), len(columns), text)
	}
	return tables
}

// realStack builds weir beside the test binary, where a stack looks for it, and returns the path of Envoy. The test goes on in an
// empty folder.
func realStack(t *testing.T) (path string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(filepath.Dir(self), "weir"), "../weir").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if path, err = envoy.Find(""); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	return path
}

const (
	mixedColumns = "round robin none fifo classes no bulk"
	burstColumns = "round robin fifo classes no giant"
)

// TestTailThroughEnvoy runs a tail with little to send. What the cells say is noise then; that they are there, and that
// every request has one end, is not.
func TestTailThroughEnvoy(t *testing.T) {
	path := realStack(t)
	r := newTailReport(tailPlan{speed: 8, seed: 1, length: 4 * time.Second, warm: time.Second, cool: time.Second, bursts: 2})
	var log bytes.Buffer
	if err := r.run(t.Context(), options{name: "tail", mode: envoy.Buffered, kv: tailKV, envoy: path, stderr: &log}); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	requests := load.Contention{Seed: 1, Model: demoModel}
	for _, c := range r.mixed {
		checkEnds(t, "bulk, "+c.column, c.results, len(requests.Steady(tailShare*r.capacity, r.plan.length)), 0)
		checkEnds(t, "jobs, "+c.column, c.jobs, len(c.jobs), tailClients)
		if (len(c.jobs) > 0) != c.extra {
			t.Errorf("%s: %d jobs", c.column, len(c.jobs))
		}
	}
	for _, c := range r.bursts {
		checkEnds(t, "giant, "+c.column, c.results, len(requests.Bursts(2, burstShare*r.capacity, burstOn, burstPeriod, c.extra)), 0)
	}
	var out bytes.Buffer
	r.print(&out)
	checkCells(t, out.String())
	if err := r.verdict(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob("*"); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// checkEnds holds that there are n results, none failed, at most so many cut, and that the answers are whole.
func checkEnds(t *testing.T, name string, results []load.Result, n, cut int) {
	t.Helper()
	e := tally(results)
	if len(results) != n || e.answered+e.refused+e.cut != n || e.failed > 0 || e.cut > cut {
		t.Errorf("%s: %d results of %d requests, %+v, want at most %d cut", name, len(results), n, e, cut)
	}
	for _, x := range results {
		if x.Err == nil && (x.Usage.PromptTokens < 500 || x.Usage.CompletionTokens < 10 || x.First <= 0) {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

// checkCells holds that every cell has a number, or a dash where there is nothing to count.
func checkCells(t *testing.T, text string) {
	t.Helper()
	tables := cells(t, text, mixedColumns, burstColumns)
	for i, want := range []struct {
		rows, columns int
		empty         string // the rows that may have a dash begin with it
	}{{12, 5, "bulk"}, {12, 4, "giant"}} {
		if len(tables[i]) != want.rows {
			t.Errorf("table %d has %d rows, want %d: %v", i, len(tables[i]), want.rows, tables[i])
		}
		for name, row := range tables[i] {
			if len(row) != want.columns {
				t.Errorf("%s: %d cells, want %d", name, len(row), want.columns)
			}
			for _, c := range row {
				v, err := strconv.ParseFloat(c, 64)
				if c == "-" && strings.HasPrefix(name, want.empty) {
					continue
				}
				if err != nil || v < 0 || v == 0 && strings.Contains(name, "TTFT") {
					t.Errorf("%s: cell %q", name, c)
				}
			}
		}
	}
}

// TestTailCounts holds what the cells are made of.
func TestTailCounts(t *testing.T) {
	r := newTailReport(tailPlan{speed: 1, length: 20 * time.Second, warm: 8 * time.Second, cool: 2 * time.Second, bursts: 2})
	ok := func(kind string, at, first, total time.Duration) load.Result {
		return load.Result{Kind: kind, At: at * time.Second, First: first * time.Second, Total: total * time.Second, Status: 200,
			Usage: load.Usage{PromptTokens: 500, CompletionTokens: 100}}
	}
	refused := load.Result{At: 10 * time.Second, Status: http.StatusTooManyRequests, Err: errors.New("busy")}
	cut := load.Result{At: 19 * time.Second, Err: context.Canceled}
	c := &r.mixed[3]
	c.results = []load.Result{ok("", 7, 90, 91), ok("", 8, 1, 2), refused, ok("", 17, 3, 4), ok("", 18, 80, 81)}
	c.jobs = []load.Result{ok("", 0, 1, 7), ok("", 0, 5, 8), ok("", 9, 7, 10), ok("", 9, 8, 11), cut}
	g := &r.bursts[1]
	g.results = []load.Result{ok(load.Giant, 5, 70, 71), ok(load.Ahead, 6, 4, 5), ok(load.Giant, 6, 6, 7), ok(load.Behind, 7, 5, 6)}
	var out bytes.Buffer
	r.print(&out)
	tables := cells(t, out.String(), mixedColumns, burstColumns)
	for _, want := range []struct {
		table, column int
		row, cell     string
	}{
		{0, 3, "interactive: TTFT p50, s", "1.000"}, {0, 3, "interactive: TTFT p99, s", "3.000"},
		{0, 3, "interactive: late or refused", "1"}, {0, 3, "interactive: errors", "0"},
		{0, 3, "bulk: TTFT p50, s", "5.000"}, {0, 3, "bulk: TTFT p99, s", "7.000"}, {0, 3, "bulk: tokens/s", "100"},
		{0, 3, "bulk: requests", "2"}, {0, 3, "bulk: errors", "0"}, {0, 2, "bulk: TTFT p50, s", "-"}, {0, 4, "bulk: tokens/s", "-"},
		{1, 1, "small behind it: TTFT p50, s", "5.000"}, {1, 1, "small before it: TTFT p99, s", "4.000"},
		{1, 1, "giant: TTFT longest, s", "6.000"}, {1, 2, "giant: TTFT p50, s", "-"},
	} {
		row := tables[want.table][want.row]
		if len(row) <= want.column || row[want.column] != want.cell {
			t.Errorf("%s, column %d: %v, want %s", want.row, want.column, row, want.cell)
		}
	}
	if err := r.verdict(); err != nil {
		t.Errorf("a refusal and a cut are no failures: %v", err)
	}
	g.results[2].Err = errors.New("reset")
	if err := r.verdict(); err == nil || !strings.Contains(err.Error(), "fifo: a request of giant failed: reset") {
		t.Errorf("verdict %v", err)
	}
	if e := tally(slices.Concat(c.results, c.jobs, g.results)); e != (ends{answered: 11, refused: 1, cut: 1, failed: 1}) {
		t.Errorf("ends %+v", e)
	}
}
