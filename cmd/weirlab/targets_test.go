package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/lab/policy"
)

// TestTargetsAreCurrent looks for each target, and makes the rows of the cheapest one again.
func TestTargetsAreCurrent(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "targets.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	if !strings.HasPrefix(doc, targetsHead) {
		t.Error("docs/targets.md begins otherwise than make targets lets it")
	}
	for _, target := range targets {
		if want := "\n## " + target.title + "\n" + target.about + "\n"; !strings.Contains(doc, want) {
			t.Errorf("docs/targets.md has no %q", want)
		}
	}
	cheap := targets[len(targets)-1]
	m := &measurer{ctx: t.Context(), stderr: io.Discard}
	verdicts := cheap.check(m)
	if m.err != nil || len(verdicts) != 3 {
		t.Fatalf("%s: %v, %v", cheap.title, verdicts, m.err)
	}
	for _, v := range verdicts {
		if !strings.Contains(doc, "\n"+v.row()) {
			t.Errorf("docs/targets.md is not what make targets makes now; it lacks\n%s", v.row())
		}
	}
}

// TestKneeIsFound: of loads of which a pool holds the first ones only, the last one held; none where it holds none.
func TestKneeIsFound(t *testing.T) {
	m := &measurer{ctx: t.Context(), stderr: io.Discard}
	for _, c := range []struct {
		loads []float64
		want  float64
	}{{[]float64{1, 2, 12}, 2}, {[]float64{1, 2}, 2}, {[]float64{12}, 0}} {
		if got := m.knee("W3b", "round-robin", c.loads); got != c.want || m.err != nil {
			t.Errorf("of %v: %v, want %v; %v", c.loads, got, c.want, m.err)
		}
	}
	if g := m.run(simOptions{workloads: []string{"W0"}, policies: []string{policy.Weir}}); m.err == nil || len(g.order) > 0 {
		t.Errorf("a workload that is none: %v, %v", g.order, m.err)
	}
	if got := m.knee("W3b", policy.Weir, []float64{1}); got != 1 {
		t.Errorf("after an error the figures are 0, so that every load is held: %v", got)
	}
}

// TestVerdicts: a bound that is reached is met, and one that is missed says so.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		v   verdict
		row string
	}{
		{atMost("a", 1.05, 1.05), "| a | at most 1.05 | 1.05 |  |\n"}, {atMost("a", 1.0512, 1.05), "| a | at most 1.05 | 1.05 | **missed** |\n"},
		{atLeast("b", 0.95, 0.95), "| b | at least 0.95 | 0.95 |  |\n"}, {atLeast("b", 0.9, 0.95), "| b | at least 0.95 | 0.9 | **missed** |\n"},
	} {
		if got := c.v.row(); got != c.row {
			t.Errorf("%q, want %q", got, c.row)
		}
	}
}
