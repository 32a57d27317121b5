package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/lab/load"
)

func (r *tailReport) print(w io.Writer) {
	fmt.Fprintf(w, `
Simulated: %d replicas of an 8B model on one H100 each (step model), %v times as fast as real ones, with the profile's
256 seats and %d tokens of KV each. Times are model seconds. Envoy %s, body mode BUFFERED, seed %d.
Small requests: 500 to 3,500 prompt tokens, 19 to 47 of them for each answer token. The pool completes %.1f/s of them
under round robin, measured by driving the step model in virtual time, all at once. Each column has the same requests,
small ones at the same times; no prompt is in a cache. round robin is Envoy without weir; none, fifo and classes are weir
with that line of queue, where classes is %s.
`, demoReplicas, r.plan.speed, tailKV, r.version, r.plan.seed, r.capacity, defaultQueue)
	r.printMixed(w)
	r.printBursts(w)
}

func (r *tailReport) printMixed(w io.Writer) {
	fmt.Fprintf(w, `
Interactive beside bulk. Interactive: small ones at %.1f/s, %.1f of capacity, open loop. Bulk: %d clients, each with one
job under way at any time, of 8,000 to 16,000 prompt and 10 to 30 answer tokens. Of %v the first %v do not count, nor
interactive requests that start in the last %v; a job counts when it is answered.

`, tailShare*r.capacity, tailShare, tailClients, r.plan.length, r.plan.warm, r.plan.cool)
	t := table{w, r.mixed}
	t.head()
	t.first("interactive", r.interactive, "p99", p99)
	t.count("interactive: late or refused", func(c *tailRun) int { return tally(c.results).refused })
	t.count("interactive: errors", func(c *tailRun) int { return tally(c.results).failed })
	t.first("bulk", r.bulk, "p99", p99)
	t.row("bulk: tokens/s", func(c *tailRun) string {
		if c.extra {
			return fmt.Sprintf("%.0f", r.bulkRate(c))
		}
		return "-"
	})
	t.count("bulk: late or refused", func(c *tailRun) int { return tally(c.jobs).refused })
	t.count("bulk: errors", func(c *tailRun) int { return tally(c.jobs).failed })
	t.late()
}

func (r *tailReport) printBursts(w io.Writer) {
	fmt.Fprintf(w, `
A giant among small ones. %d bursts, one each %v: small ones at %.1f/s, %.1f of capacity, for %v; in the middle, when
each replica is just past its knee, a giant of %d prompt tokens, of the same class. The first burst does not count.

`, r.plan.bursts, burstPeriod, burstShare*r.capacity, burstShare, burstOn, load.GiantTokens)
	t := table{w, r.bursts}
	t.head()
	t.first("small behind it", r.burst(load.Behind), "p99", p99)
	t.first("small before it", r.burst(load.Ahead), "p99", p99)
	t.first("giant", r.burst(load.Giant), "longest", longest)
	t.count("late or refused", func(c *tailRun) int { return tally(c.results).refused })
	t.count("errors", func(c *tailRun) int { return tally(c.results).failed })
	t.late()
}

// table writes rows of one cell for each run.
type table struct {
	w    io.Writer
	runs []tailRun
}

func (t table) row(name string, cell func(*tailRun) string) {
	fmt.Fprintf(t.w, "%-34s", name)
	for i := range t.runs {
		fmt.Fprintf(t.w, " %12s", cell(&t.runs[i]))
	}
	fmt.Fprintln(t.w)
}

func (t table) head() { t.row("", func(c *tailRun) string { return c.column }) }

func (t table) count(name string, n func(*tailRun) int) {
	t.row(name, func(c *tailRun) string { return fmt.Sprint(n(c)) })
}

func (t table) late() {
	t.row("request written late, p99, s", func(c *tailRun) string { return seconds(load.Lateness(c.results).P99) })
}

// first is three rows: the requests that count, and their times to first token, as the median and another figure. Where
// nobody was answered stands a dash.
func (t table) first(name string, of func(*tailRun) load.Summary, rank string, far func(load.Percentiles) time.Duration) {
	cell := func(figure func(load.Percentiles) time.Duration) func(*tailRun) string {
		return func(c *tailRun) string {
			if s := of(c); s.Requests > s.Errors {
				return seconds(figure(s.First))
			}
			return "-"
		}
	}
	t.count(name+": requests", func(c *tailRun) int { return of(c).Requests })
	t.row(name+": TTFT p50, s", cell(p50))
	t.row(fmt.Sprintf("%s: TTFT %s, s", name, rank), cell(far))
}

func p50(p load.Percentiles) time.Duration     { return p.P50 }
func p99(p load.Percentiles) time.Duration     { return p.P99 }
func longest(p load.Percentiles) time.Duration { return p.Max }

// interactive sums up the results beside bulk that count.
func (r *tailReport) interactive(c *tailRun) load.Summary {
	return load.Summarize(started(c.results, r.plan.warm, r.plan.length-r.plan.cool), every)
}

// burst sums up the results of a kind in the bursts that count.
func (r *tailReport) burst(kind string) func(*tailRun) load.Summary {
	return func(c *tailRun) load.Summary {
		return load.Summarize(started(c.results, burstPeriod, time.Hour), kind)
	}
}

// started is the results that started from one time to another.
func started(results []load.Result, from, to time.Duration) []load.Result {
	return slices.DeleteFunc(slices.Clone(results), func(x load.Result) bool { return x.At < from || x.At >= to })
}

// bulk sums up the jobs that were answered in the time that counts.
func (r *tailReport) bulk(c *tailRun) load.Summary {
	return load.Summarize(slices.DeleteFunc(slices.Clone(c.jobs), func(x load.Result) bool {
		end := x.At + x.Total
		return x.Err != nil || end < r.plan.warm || end >= r.plan.length
	}), every)
}

// bulkRate is the tokens per second, prompts and answers, of those jobs.
func (r *tailReport) bulkRate(c *tailRun) float64 {
	u := r.bulk(c).Usage
	return float64(u.PromptTokens+u.CompletionTokens) / (r.plan.length - r.plan.warm).Seconds()
}

// ends is how requests ended; cut is by the end of the run.
type ends struct{ answered, refused, cut, failed int }

// tally counts all results, those that count for nothing else too.
func tally(results []load.Result) (e ends) {
	for i := range results {
		switch x := &results[i]; {
		case x.Err == nil:
			e.answered++
		case x.Status == http.StatusTooManyRequests:
			e.refused++
		case errors.Is(x.Err, context.Canceled):
			e.cut++
		default:
			e.failed++
		}
	}
	return e
}

// verdict is an error that lists what failed; nil for nothing.
func (r *tailReport) verdict() error {
	var errs []error
	for _, c := range slices.Concat(r.mixed, r.bursts) {
		for _, x := range slices.Concat(c.results, c.jobs) {
			if one := tally([]load.Result{x}); one.failed > 0 {
				errs = append(errs, fmt.Errorf("%s: a request of %s failed: %w", c.column, x.Kind, x.Err))
				break
			}
		}
	}
	return errors.Join(errs...)
}
