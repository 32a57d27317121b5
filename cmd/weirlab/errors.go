package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/weirproxy/weir/pkg/lab/sim"
	"github.com/weirproxy/weir/pkg/pool"
)

// The runs whose predictions are looked at: loads below the knee, but for the bulk of W7-1, which is more than fits, so that
// some wait at the gate. Texts have 3.2 bytes in a token, and not the four that weir begins with.
const (
	errorsPolicy = "weir/bytes_per_token=3.2"
	errorsLength = 5 * time.Minute
)

var errorsRuns = []struct {
	workload string
	load     float64
}{{"W3", 14}, {"W5-35", 16}, {"W6", 15}, {"W7-1", 15}, {"W10", 50}}

// runErrors measures how far weir's predictions are off.
func runErrors(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("weirlab errors", flag.ContinueOnError)
	fs.SetOutput(stderr)
	doc := fs.String("doc", "", "write into this `file`, and not to stdout")
	if err := parse(fs, args); err != nil {
		return err
	}
	if err := canWrite(*doc); err != nil {
		return err
	}
	text := bytes.NewBufferString(errorsHead)
	for i := range errorsRuns {
		rows, err := errorsOf(ctx, i, stderr)
		if err != nil {
			return err
		}
		text.WriteString(rows)
	}
	return writeDoc(*doc, stdout, text.Bytes())
}

// errorsOf is the rows of one of the runs.
func errorsOf(ctx context.Context, i int, stderr io.Writer) (string, error) {
	c := errorsRuns[i]
	o := simOptions{workloads: []string{c.workload}, policies: []string{errorsPolicy}, loads: []float64{c.load}, seeds: 1, routers: 1, length: errorsLength}
	cells, err := o.cells()
	if err != nil {
		return "", err
	}
	rows, err := allRows(ctx, cells, stderr)
	if err != nil {
		return "", err
	}
	return errorRows(fmt.Sprintf("%s at %g/s", c.workload, c.load), rows[0].result), nil
}

func errorRows(at string, r *sim.Result) string {
	var b bytes.Buffer
	for _, w := range pool.Whats() {
		e := r.Errors[w]
		if e.N == 0 {
			continue
		}
		told := "-"
		if t := r.Truth[w]; t.Actual > 0 {
			told = fmt.Sprintf("%.3f", t.Predicted/t.Actual)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | %.3f | %s |\n", at, w, e.N, offBy(e.Median), offBy(e.P90), e.Bias, told)
	}
	return b.String()
}

// offBy is a share for people.
func offBy(x float64) string {
	if math.IsInf(x, 0) {
		return "infinite"
	}
	return fmt.Sprintf("%.3g %%", 100*x)
}

const errorsHead = `# How far weir's predictions are off

Made by ` + "`make errors`" + `. Simulated: the code that serves, over step models of vLLM replicas in virtual time ([calibration](calibration.md)); one seed,
5 minutes of arrivals, of which the first (of W6, the first two) only fill the caches. Loads are below the knee, but for the bulk of W7-1, of which there
is more than fits. Texts have 3.2 bytes in each token; weir begins with 4, and learns.

Median and p90 are of |predicted/actual - 1| over requests; of cached tokens it is infinite where some were predicted and none were there. Predicted over actual is that of their sums; as
told is the same as weir itself finds it from the replicas' counters, with the first minutes in it: ` + "`weir_predicted_total` over `weir_actual_total`" + `.

- gate_wait_seconds: of requests that were held with a prediction (package gate).
- prompt_tokens: bytes over what is learned of bytes in a token. All texts of a run are alike here, so that it is the error of the learning alone: a real text is off by how it differs from the model's mean.
- cached_tokens: the index's blocks are of 256 bytes, the cache's of 16 tokens, so that up to a block less is predicted.
- output_tokens: the mean of the class; weir cannot know a request's own.
- first_token_seconds: V*P + u*P + D at the pick, and what the mean request takes beyond that: the replica's API server, 15 ms here, and the step that it is in when the request comes.

| run | what | requests | median | p90 | predicted over actual | as told |
|---|---|---|---|---|---|---|
`
