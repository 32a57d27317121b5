package main

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/lab/sim"
	"github.com/weirproxy/weir/pkg/pool"
)

// TestErrorsAreCurrent makes the rows of the cheapest run again.
func TestErrorsAreCurrent(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	if !strings.HasPrefix(doc, errorsHead) {
		t.Error("docs/errors.md begins otherwise than make errors lets it")
	}
	for _, r := range errorsRuns {
		if !strings.Contains(doc, "\n| "+r.workload+" at ") {
			t.Errorf("docs/errors.md has no row of %s", r.workload)
		}
	}
	rows, err := errorsOf(t.Context(), len(errorsRuns)-1, io.Discard)
	if err != nil || strings.Count(rows, "\n") != 3 { // nobody waits, and nothing is cached
		t.Fatalf("%v\n%s", err, rows)
	}
	if !strings.Contains(doc, rows) {
		t.Errorf("docs/errors.md is not what make errors makes now; it lacks\n%s", rows)
	}
}

func TestErrorRows(t *testing.T) {
	r := &sim.Result{Errors: map[pool.What]sim.Error{
		pool.PromptTokens: {N: 3, Median: 0.25, P90: 1, Bias: 1.5}, pool.CachedTokens: {N: 1, Median: math.Inf(1), P90: math.Inf(1), Bias: 2},
	}, Truth: []pool.TruthStats{{}, {Predicted: 3, Actual: 2}, {}, {}, {}}}
	const want = "| W at 1/s | prompt_tokens | 3 | 25 % | 100 % | 1.500 | 1.500 |\n| W at 1/s | cached_tokens | 1 | infinite | infinite | 2.000 | - |\n"
	if got := errorRows("W at 1/s", r); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
