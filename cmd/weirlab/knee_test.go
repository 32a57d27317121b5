package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/sim"
)

// TestKneeIsCurrent looks for each table of docs/knee.md, and makes the rows of the lightest loads again.
func TestKneeIsCurrent(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "knee.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := strings.ReplaceAll(string(text), "**", "") // what is bold takes the rows of all policies
	if !strings.HasPrefix(string(text), kneeHead) {
		t.Error("docs/knee.md begins otherwise than make knee lets it")
	}
	for _, k := range kneeTables() {
		if want := "\n## " + k.title + "\n" + k.about + "\n"; !strings.Contains(string(text), want) {
			t.Errorf("docs/knee.md has no %q", want)
		}
	}
	rows := 0
	for _, c := range []struct {
		of       *kneeTable
		policies []string
	}{
		{sweepTable, []string{policy.Weir, policy.Weir + "/gate=static-hold", policy.Weir + "/gate=probabilistic"}},
		{lowTable, []string{policy.Weir, noKnee}},
	} {
		o := c.of.runs[0]
		o.policies, o.loads = c.policies, o.loads[:1]
		m := &measurer{ctx: t.Context(), stderr: io.Discard}
		g := c.of.run(m, []simOptions{o})
		if m.err != nil {
			t.Fatal(m.err)
		}
		for _, k := range g.order {
			rows++
			if row := strings.ReplaceAll(rowOf(c.of.columns, g, k), "**", ""); !strings.Contains(doc, "\n"+row) {
				t.Errorf("docs/knee.md is not what make knee makes now; it lacks\n%s", row)
			}
		}
	}
	if rows != 5 {
		t.Errorf("%d rows were made again, want 5", rows)
	}
}

// figuresOf is the groups of results with these figures, one seed each.
func figuresOf(rows map[simKey]sim.Result) *simGroups {
	g := group(nil)
	for k, r := range rows {
		g.order = append(g.order, k)
		g.of[k] = []*sim.Result{&r}
	}
	return g
}

// ran is a run with an interactive p99 and prompt tokens of bulk, and of all, a second.
func ran(p99, bulk float64) sim.Result {
	r := sim.Result{Classes: map[string]sim.Figures{"interactive": {TTFTP99: p99}, "bulk": {PromptRate: bulk}}}
	r.PromptRate = bulk
	return r
}

// TestBeaten: weir is beaten by who is better in one figure by more than chance and not worse in the other, at the same load.
func TestBeaten(t *testing.T) {
	for _, c := range []struct {
		p99, bulk float64 // the control's; weir's are 1 and 1000
		beaten    bool
	}{
		{0.9, 1100, true}, {1.01, 1100, true}, {0.9, 990, true}, {1, 1000, false}, {1.01, 1010, false},
		{1.1, 1100, false}, {0.9, 900, false}, {1.1, 900, false},
	} {
		g := figuresOf(map[simKey]sim.Result{
			{"W7-1", 15, policy.Weir}: ran(1, 1000), {"W7-1", 15, "weir/x"}: ran(c.p99, c.bulk),
			{"W7-1", 40, "weir/x"}: ran(0.1, 9000), {"W7-2", 15, "weir/x"}: ran(0.1, 9000),
		})
		got := g.beaten(interactiveOf(figP99), lower, inClass("bulk", thousandTokens), higher)
		if (len(got) == 1 && got[0] == "W7-1 at 15/s by weir/x") != c.beaten || len(got) > 1 {
			t.Errorf("p99 %v, bulk %v: %q, want beaten %v", c.p99, c.bulk, got, c.beaten)
		}
	}
}

// TestMarked: weir's figure is bold where a control's is better by more than chance, and no other ever is.
func TestMarked(t *testing.T) {
	column := marked("p99", interactiveOf(figP99), lower, sim.Short)
	for _, c := range []struct {
		control float64
		want    string
	}{{0.9, "**1.00**"}, {0.99, "1.00"}, {2, "1.00"}} {
		weir, other := simKey{"W8", 5, policy.Weir}, simKey{"W8", 5, "weir/x"}
		g := figuresOf(map[simKey]sim.Result{weir: ran(1, 1), other: ran(c.control, 1), {"W8", 6, "weir/x"}: ran(0.1, 1)})
		if got := column.of(g, weir); got != c.want {
			t.Errorf("beside %v: %s, want %s", c.control, got, c.want)
		}
		if got := column.of(g, other); strings.Contains(got, "*") {
			t.Errorf("the control is %s", got)
		}
	}
}

// TestBestBound: of the bounds with nearly the lowest p99 the one with most throughput, whatever one with a longer tail gives.
func TestBestBound(t *testing.T) {
	rows := map[simKey]sim.Result{}
	for i, b := range bounds {
		rows[simKey{"W8", 10, fixed + b}] = ran(1+0.04*float64(i), 100*float64(i))
	}
	rows[simKey{"W8", 10, policy.Weir}] = ran(0.1, 9000)
	if got := bestBound(figuresOf(rows), 10); got.policy != fixed+bounds[2] { // 1.08 times the lowest
		t.Errorf("B* is %v", got)
	}
}

// TestTenths: the sweep is at loads of W8's own, the tenth of them at 1.2 times the capacity.
func TestTenths(t *testing.T) {
	m := &measurer{}
	loads, own := tenths(), m.loads("W8")
	if len(loads) != 11 || loads[pastKnee] != mixLoad("32B", 1.2) {
		t.Fatalf("loads %v", loads)
	}
	for _, load := range loads {
		if !slices.Contains(own, load) {
			t.Errorf("%v is no load of W8, which has %v", load, own)
		}
	}
}
