package sim

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

const calibrationHead = `# Calibration of the step model

Made by ` + "`weirlab calibrate`" + `. Simulated, except where it says measured.

The llm-d project measured 8 replicas of Qwen3-32B, each on two H100, under its b2b-saas load: 150 system prompts of
6,000 tokens with 5 questions of 1,200 each and 1,000 answer tokens, sent once to warm up (15 requests/s for 50 s) and
then over and over in 16 stages of 3 to 60 requests/s, 20 to 38 s long, each drained before the next begins (workload
b2b-ladder). The step model replays just that. One of its constants is fitted to it: b of the 32B profile, the time that
a token of context adds to a step. 0.039 us is 128 KB of KV per token and GPU at the memory's full 3.35 TB/s, 0.076 us
is what BLIS fitted.

TTFT in seconds. "All" is all requests of the 16 stages together; "40-60/s" is the mean of those eight stages. Measured
answers were 937 tokens in the mean, as some ended early; simulated ones are all of 1,000. The last stage was measured in
another run than the rest, against a Kubernetes service, which picks at random. One seed; round robin's figures differ by
4 % at most between three.

| | TTFT mean at 15/s | at 20/s | all, mean | all, p90 | answer tokens/s at 40-60/s | last stage: TTFT mean | tokens/s | TPOT |
|---|---|---|---|---|---|---|---|---|
`

// WriteCalibration writes docs/calibration.md: the fit of ladders, for each of LadderPolicies one for each of LadderB, in
// this order.
func WriteCalibration(w io.Writer, ladders []*Ladder) {
	fmt.Fprint(w, calibrationHead)
	writeFit(w, "measured: round robin", MeasuredRoundRobin)
	var own []*Ladder
	for i, l := range ladders {
		if i == len(LadderB) {
			writeFit(w, "measured: llm-d's router", MeasuredRouted)
		}
		l.writeFit(w)
		if l.B == LadderB[ownB] {
			own = append(own, l)
		}
	}
	n := len(LadderB)
	writeNearest(w, ladders[:n], ladders[n:2*n])
	writeMisfit(w, own[0].Fit, own[1].Fit)
	fmt.Fprint(w, `
The measured router scores as weighted 2:2:3 does, on gauges read every 50 ms; the simulated one reads them each second.
The simulation has no network and no proxy, and 15 ms for all that comes before the queue.
`)
	writeStages(w, own)
}

// writeNearest says which b comes nearest to the measured answer tokens at either end.
func writeNearest(w io.Writer, roundRobin, routed []*Ladder) {
	nearest := func(ladders []*Ladder, measured float64) time.Duration {
		off := func(l *Ladder) float64 { return math.Abs(math.Log(l.Fit.Tokens / measured)) }
		return slices.MinFunc(ladders, func(a, b *Ladder) int { return cmp.Compare(off(a), off(b)) }).B
	}
	fmt.Fprintf(w, `
Nearest to the measured answer tokens comes b = %.3f us under round robin, where every replica stores every system prompt
again and memory decides how many sequences run, and b = %.3f us when routed, where memory hardly binds and b sets the
pace. The 32B profile has %.3f, between the two ends.
`, micro(nearest(roundRobin, MeasuredRoundRobin.Tokens)), micro(nearest(routed, MeasuredRouted.Tokens)), micro(LadderB[ownB]))
}

func micro(b time.Duration) float64 { return b.Seconds() * 1e6 }

// writeMisfit writes what the profile's own b does not explain: simulated over measured, and what that does to a gain.
func writeMisfit(w io.Writer, roundRobin, routed Fit) {
	fmt.Fprintf(w, `
## Simulated over measured, b = %.3f us

| | TTFT mean at 15/s | at 20/s | all, mean | all, p90 | answer tokens/s at 40-60/s | last stage: TTFT mean | tokens/s | TPOT |
|---|---|---|---|---|---|---|---|---|
`, micro(LadderB[ownB]))
	writeRatios(w, "round robin", roundRobin, MeasuredRoundRobin)
	writeRatios(w, "routed (weighted)", routed, MeasuredRouted)
	fmt.Fprintf(w, `
What routing gains over round robin, all stages: TTFT mean %.0fx measured and %.0fx simulated, answer tokens %.1fx measured
and %.1fx simulated. So a gain in TTFT is to be divided by %.1f here, and one in tokens multiplied by %.1f, before it is
taken for one on real GPUs.
`, MeasuredRoundRobin.Mean/MeasuredRouted.Mean, roundRobin.Mean/routed.Mean, MeasuredRouted.Tokens/MeasuredRoundRobin.Tokens, routed.Tokens/roundRobin.Tokens,
		roundRobin.Mean/routed.Mean/(MeasuredRoundRobin.Mean/MeasuredRouted.Mean), MeasuredRouted.Tokens/MeasuredRoundRobin.Tokens/(routed.Tokens/roundRobin.Tokens))
}

func writeRatios(w io.Writer, name string, f, measured Fit) {
	fmt.Fprintf(w, "| %s |", name)
	for _, x := range [][2]float64{{f.At15, measured.At15}, {f.At20, measured.At20}, {f.Mean, measured.Mean}, {f.P90, measured.P90},
		{f.Tokens, measured.Tokens}, {f.Last, measured.Last}, {f.LastTokens, measured.LastTokens}, {f.TPOT, measured.TPOT}} {
		if x[1] == 0 {
			fmt.Fprint(w, " - |")
		} else {
			fmt.Fprintf(w, " %.2fx |", x[0]/x[1])
		}
	}
	fmt.Fprintln(w)
}

func (l *Ladder) writeFit(w io.Writer) {
	writeFit(w, fmt.Sprintf("%s, b = %.3f us", l.Policy, micro(l.B)), l.Fit)
}

func writeFit(w io.Writer, name string, f Fit) {
	fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %.1fk | %s | %.1fk | %.0f ms |\n", name, known(f.At15), known(f.At20),
		known(f.Mean), known(f.P90), f.Tokens/1000, known(f.Last), f.LastTokens/1000, 1000*f.TPOT)
}

// known is a figure with three digits, or a dash for one that was not published.
func known(s float64) string {
	if s == 0 {
		return "-"
	}
	return Short(s)
}

// writeStages writes each stage of a ladder of each policy.
func writeStages(w io.Writer, ladders []*Ladder) {
	fmt.Fprint(w, `
## Stage by stage, b = 0.050 us

TTFT mean and p90 in seconds, answer tokens per second until the stage is drained, share of prompt tokens cached.

| requests/s | requests | round robin | | | | weighted 2:2:3 | | | | weir | | | |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
`)
	for i, rate := range ladders[0].Rates {
		fmt.Fprintf(w, "| %g | %d |", rate, ladders[0].Stages[i].Sent)
		for _, l := range ladders {
			r := l.Stages[i]
			fmt.Fprintf(w, " %s | %s | %.1fk | %.0f %% |", Short(r.TTFTMean), Short(r.TTFTP90), r.OutputRate/1000, 100*r.HitRate)
		}
		fmt.Fprintln(w)
	}
}

// Short is a time in seconds with three digits.
func Short(s float64) string {
	switch {
	case s >= 99.95:
		return fmt.Sprintf("%.0f", s)
	case s >= 9.995:
		return fmt.Sprintf("%.1f", s)
	case s >= 0.9995:
		return fmt.Sprintf("%.2f", s)
	}
	return fmt.Sprintf("%.3f", s)
}
