package sim

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestCalibration holds the step model to what was measured, and docs/calibration.md to the step model, with the ladder
// at the 32B profile's own b.
func TestCalibration(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "calibration.md"))
	if err != nil {
		t.Fatal(err)
	}
	ladders := make([]*Ladder, len(LadderPolicies))
	var group sync.WaitGroup
	for i, p := range LadderPolicies {
		group.Go(func() {
			l, err := RunLadder(p, LadderB[ownB])
			if err != nil {
				t.Error(err)
			}
			ladders[i] = l
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	rr, routed := ladders[0].Fit, ladders[1].Fit
	for name, c := range map[string][4]float64{
		// Simulated, measured, and the least and the most of the one over the other.
		"round robin at 15/s":     {rr.At15, MeasuredRoundRobin.At15, 0.4, 1.1},
		"round robin at 20/s":     {rr.At20, MeasuredRoundRobin.At20, 0.9, 1.1},
		"round robin, all":        {rr.Mean, MeasuredRoundRobin.Mean, 0.9, 1.1},
		"round robin, all, p90":   {rr.P90, MeasuredRoundRobin.P90, 0.8, 1.3},
		"round robin, tokens":     {rr.Tokens, MeasuredRoundRobin.Tokens, 0.9, 1.25},
		"routed, all":             {routed.Mean, MeasuredRouted.Mean, 0.5, 1.1},
		"routed, all, p90":        {routed.P90, MeasuredRouted.P90, 0.5, 1.1},
		"routed, tokens":          {routed.Tokens, MeasuredRouted.Tokens, 0.85, 1.1},
		"routed, last stage":      {routed.Last, MeasuredRouted.Last, 0.4, 1.1},
		"routed, last stage TPOT": {routed.TPOT, MeasuredRouted.TPOT, 0.9, 1.25},
	} {
		if x := c[0] / c[1]; x < c[2] || x > c[3] {
			t.Errorf("%s: %.3f of the measured, want %v to %v", name, x, c[2], c[3])
		}
	}
	var now bytes.Buffer
	for _, l := range ladders {
		l.writeFit(&now)
	}
	writeMisfit(&now, rr, routed)
	writeStages(&now, ladders)
	for line := range strings.Lines(now.String()) {
		if !strings.Contains(string(doc), line) {
			t.Errorf("docs/calibration.md is not what `weirlab calibrate` prints now; it lacks\n%s", line)
		}
	}
}

func TestShort(t *testing.T) {
	for x, want := range map[float64]string{0.0123: "0.012", 0.9996: "1.00", 1.234: "1.23", 9.996: "10.0", 56.78: "56.8", 99.96: "100", 1234.5: "1234"} {
		if got := Short(x); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
}
