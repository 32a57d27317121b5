package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"

	"github.com/weirproxy/weir/pkg/lab/load"
)

// agreeApart is by how much two policies differ in virtual time for their order to be asked for in real time.
const agreeApart = 1.2

// agreePair is two policies on one cell, the slower one in virtual time first, and the ratios of their means.
type agreePair struct {
	slow, fast          *agreeRow
	simulated, measured float64
}

func (p *agreePair) agrees() bool { return p.measured > 1 }

// pairs is those that are far enough apart, the farthest of a cell first.
func (r *agreeReport) pairs() (all []agreePair) {
	for i := range r.rows {
		for k := range r.rows[:i] {
			p := agreePair{slow: &r.rows[i], fast: &r.rows[k]}
			if r.place(p.slow.cell) != r.place(p.fast.cell) {
				continue
			}
			if p.slow.simulated(meanOf) < p.fast.simulated(meanOf) {
				p.slow, p.fast = p.fast, p.slow
			}
			p.simulated = p.slow.simulated(meanOf) / p.fast.simulated(meanOf)
			p.measured = p.slow.real.mean / p.fast.real.mean
			if p.simulated >= agreeApart {
				all = append(all, p)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b agreePair) int {
		return cmp.Or(cmp.Compare(r.place(a.slow.cell), r.place(b.slow.cell)), cmp.Compare(b.simulated, a.simulated))
	})
	return all
}

// place is where a cell stands in the plan.
func (r *agreeReport) place(c agreeCell) int {
	return slices.IndexFunc(r.plan.cells, func(x agreeCell) bool { return x.workload == c.workload && x.load == c.load })
}

func meanOf(f agreeFigures) float64 { return f.mean }
func p50Of(f agreeFigures) float64  { return f.p50 }
func p99Of(f agreeFigures) float64  { return f.p99 }
func hitsOf(f agreeFigures) float64 { return f.hits }

// phases is a figure of the simulations, in order.
func (row *agreeRow) phases(of func(agreeFigures) float64) []float64 {
	all := make([]float64, len(row.sim))
	for i, f := range row.sim {
		all[i] = of(f)
	}
	slices.Sort(all)
	return all
}

// simulated is its median.
func (row *agreeRow) simulated(of func(agreeFigures) float64) float64 { return median(row.phases(of)) }

// off is how many times the real mean is the simulated one.
func (row *agreeRow) off() float64 { return row.real.mean / row.simulated(meanOf) }

func (r *agreeReport) print(w io.Writer) {
	fmt.Fprintf(w, `
%d replicas, Envoy %s with one worker, body mode BUFFERED, requests of seed %d, %v model seconds per second, %d cores. TTFT
in model seconds from the intended arrival. sim is the median of %d simulations, whose means are from low to high; real is one run.
`, agreeReplicas, r.version, r.plan.seed, r.plan.speed, runtime.NumCPU(), r.plan.phases)
	for i, c := range r.plan.cells {
		r.printCell(w, c, slices.DeleteFunc(slices.Clone(r.rows), func(row agreeRow) bool { return r.place(row.cell) != i }))
	}
	r.printPairs(w)
	r.printSum(w)
}

func (r *agreeReport) printCell(w io.Writer, c agreeCell, rows []agreeRow) {
	fmt.Fprintf(w, `
## %s at %g requests/s

%d requests in %v, from cold; the %d after the first %v count.

| policy | TTFT mean, sim | low to high | real | real/sim | outside the replicas | p50, sim | real | p99, sim | real | hit rate, sim | real | written late, p99 | CPU s of all |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
`, c.workload, c.load, len(rows[0].ran.results), c.length, rows[0].real.counted, c.warm)
	for i := range rows {
		fmt.Fprint(w, rows[i].line())
	}
}

// line is one of the table.
func (row *agreeRow) line() string {
	means := row.phases(meanOf)
	used := row.ran.cpu.envoy + row.ran.cpu.weir + row.ran.cpu.self
	return fmt.Sprintf("| %s | %.3f | %.3f to %.3f | %.3f | %.2f | %.3f | %.3f | %.3f | %.3f | %.3f | %s | %s | %s | %.1f of %.1f |\n",
		row.policy, row.simulated(meanOf), means[0], means[len(means)-1], row.real.mean, row.off(), row.real.outside,
		row.simulated(p50Of), row.real.p50, row.simulated(p99Of), row.real.p99, percent(row.simulated(hitsOf)), percent(row.real.hits),
		seconds(load.Lateness(row.ran.results).P99), used.Seconds(), row.ran.wall.Seconds())
}

func (r *agreeReport) printPairs(w io.Writer) {
	fmt.Fprintf(w, `
## Pairs that differ by a fifth or more

How many times the mean TTFT of the slower is that of the faster one.

| workload | requests/s | slower in simulation | faster | sim | real | same sign |
|---|---|---|---|---|---|---|
`)
	for _, p := range r.pairs() {
		sign := "yes"
		if !p.agrees() {
			sign = "**no**"
		}
		fmt.Fprintf(w, "| %s | %g | %s | %s | %.2f | %.2f | %s |\n",
			p.slow.cell.workload, p.slow.cell.load, p.slow.policy, p.fast.policy, p.simulated, p.measured, sign)
	}
}

// printSum is the closing line.
func (r *agreeReport) printSum(w io.Writer) {
	pairs, agreed := r.pairs(), 0
	for i := range pairs {
		if pairs[i].agrees() {
			agreed++
		}
	}
	var far *agreeRow
	within := 0
	for i := range r.rows {
		row := &r.rows[i]
		if away(row) <= 0.1 {
			within++
		}
		if far == nil || away(row) > away(far) {
			far = row
		}
	}
	fmt.Fprintf(w, "\n%d of %d pairs agree in sign. Mean TTFT: %d of %d runs within 10 %%, the farthest off by %.0f %% (%s at %g/s, %s).\n",
		agreed, len(pairs), within, len(r.rows), 100*away(far), far.cell.workload, far.cell.load, far.policy)
}

// away is how far the real mean is from the simulated one, as a share of that.
func away(row *agreeRow) float64 { return math.Abs(row.off() - 1) }

// errNoText is what is wrong with a result that has neither a first token nor an error.
var errNoText = errors.New("no text, and no error")

// verdict is an error that lists requests without an answer and pairs that do not agree; nil for neither.
func (r *agreeReport) verdict() error {
	var errs []error
	for i := range r.rows {
		row := &r.rows[i]
		for k := range row.ran.results {
			if x := &row.ran.results[k]; x.First == 0 {
				errs = append(errs, fmt.Errorf("%s at %g/s, %s: no answer: %w", row.cell.workload, row.cell.load, row.policy, cmp.Or(x.Err, errNoText)))
				break
			}
		}
	}
	for _, p := range r.pairs() {
		if !p.agrees() {
			errs = append(errs, fmt.Errorf("%s at %g/s: the mean TTFT of %s is %.2f times that of %s in virtual time, and %.2f times in real time",
				p.slow.cell.workload, p.slow.cell.load, p.slow.policy, p.simulated, p.fast.policy, p.measured))
		}
	}
	return errors.Join(errs...)
}
