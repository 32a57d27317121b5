package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/lab/workload"
)

// cheap picks the runs of a lesson that the test makes again: under weir at the lightest load. Of lessons 2 and 6 it picks
// none: their tables are made as those of 1 and 3 are.
func (l *lesson) cheap(c simCell) bool {
	load, workloads := c.workload.Loads[0], l.workloads[:1]
	if l.loads != nil {
		load = l.loads[0]
	}
	switch l.file {
	case "2-tokens", "6-cluster":
		return false
	case "4-tail": // a row is compared with that without bulk
		workloads = l.workloads[:2]
	}
	return c.policy == l.policies[0] && c.load == load && slices.Contains(workloads, c.workload.Name)
}

// TestLessonsAreCurrent makes a row or two of the lessons again, and looks for all that belongs to it.
func TestLessonsAreCurrent(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	text, err := os.ReadFile(filepath.Join(docs, "lessons.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	if !strings.HasPrefix(doc, lessonsHead) {
		t.Error("docs/lessons.md begins otherwise than make lessons lets it")
	}
	rows := 0
	for i := range lessons {
		l := &lessons[i]
		t.Run(l.file, func(t *testing.T) {
			for _, want := range []string{"\n## " + l.title + "\n", "(lessons/" + l.file + ".svg)", "\n    " + l.command() + "\n"} {
				if !strings.Contains(doc, want) {
					t.Errorf("docs/lessons.md has no %q", want)
				}
			}
			plot, err := os.ReadFile(filepath.Join(docs, "lessons", l.file+".svg"))
			if err != nil || !strings.Contains(string(plot), ">"+l.policies[0]) && l.file != "5-knee" {
				t.Errorf("no plot of %s: %v", l.policies[0], err)
			}
			g, err := l.run(t.Context(), io.Discard, l.cheap)
			if err != nil {
				t.Fatal(err)
			}
			rows += len(g.order)
			for _, k := range g.order {
				if row := rowOf(l.columns, g, k); !strings.Contains(doc, "\n"+row) {
					t.Errorf("docs/lessons.md is not what make lessons makes now; it lacks\n%s", row)
				}
			}
		})
	}
	if rows != 5 {
		t.Errorf("%d rows were made again, want 5", rows)
	}
}

// TestKneeCapacity: the knee of lesson 5 is the one that weirlab profile prints.
func TestKneeCapacity(t *testing.T) {
	o := profileOptions{workload: "W10", seed: 1}
	pool, source, err := o.source()
	if err != nil {
		t.Fatal(err)
	}
	m, err := workload.Measure(source, pool)
	if err != nil || pool.Replicas != kneeReplicas || math.Abs(m.Routed.Knee-kneeCapacity) > 0.05 {
		t.Errorf("%d replicas with a knee of %v, %v", pool.Replicas, m.Routed.Knee, err)
	}
}

// TestErlangWait: what lesson 5 compares with is M/M/4 at the utilization, and has no end at its knee.
func TestErlangWait(t *testing.T) {
	for load, want := range map[float64]string{0: "0.000", kneeCapacity / 2: "0.005", 0.75 * kneeCapacity: "0.030", kneeCapacity: "no end", 2 * kneeCapacity: "no end"} {
		if got := known(erlangWait(load)); got != want {
			t.Errorf("at %v: %s, want %s", fmt.Sprint(load), got, want)
		}
	}
}
