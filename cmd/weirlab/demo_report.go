package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/lab/load"
)

// report is what the demo has found.
type report struct {
	mix           load.Mix
	capacity      float64
	mode          envoy.Mode
	version       string
	before, after outcome // round robin, weir
	picked        float64 // weir's picks that were served by the replica it picked
}

// minServed is the share of requests that the picked replica must serve; less means that Envoy silently
// takes its fallback.
const minServed = 0.999

func (r *report) print(w io.Writer) {
	n := len(r.after.results)
	fmt.Fprintf(w, `
Simulated: %d replicas of an 8B model on one H100 each (step model), %.0f times as fast as real ones.
All times are model seconds: wall time times %.0f. Envoy %s, body mode %s. %d requests, both runs from cold.
Prefix cache: %d tokens a replica, %d in all; shared prompts and documents: %d tokens.
Offered load: %.1f requests/s, %.1f of the %.1f that the pool completes under round robin, measured by
driving the same step model in virtual time with this mix, all requests at once.

%-34s %12s %12s
`, demoReplicas, demoSpeed, demoSpeed, r.version, r.mode.Name(), n, demoKV, demoReplicas*demoKV, r.mix.WorkingSet(),
		r.mix.Rate, demoShare, r.capacity, "", "round robin", "weir")
	row := func(name, before, after string) { fmt.Fprintf(w, "%-34s %12s %12s\n", name, before, after) }
	for _, k := range append([]string{every}, load.Kinds...) {
		b, a := load.Summarize(r.before.results, k), load.Summarize(r.after.results, k)
		row(fmt.Sprintf("TTFT p50 %s, s  (%d requests)", kind(k), a.Requests), seconds(b.First.P50), seconds(a.First.P50))
		row(fmt.Sprintf("TTFT p99 %s, s", kind(k)), seconds(b.First.P99), seconds(a.First.P99))
	}
	row("prefix-cache hit rate", percent(r.before.hits), percent(r.after.hits))
	row("work skew, max/mean tokens", fmt.Sprintf("%.2f", r.before.skew), fmt.Sprintf("%.2f", r.after.skew))
	row("tokens of the busiest replica", fmt.Sprintf("%.2fM", r.before.most/1e6), fmt.Sprintf("%.2fM", r.after.most/1e6))
	row("errors", fmt.Sprint(failures(r.before)), fmt.Sprint(failures(r.after)))
	row("picked = served", "-", percent(r.served()))
	row("request written late, p99, s", seconds(load.Lateness(r.before.results).P99), seconds(load.Lateness(r.after.results).P99))
	fmt.Fprintf(w, "\nCPU s of %.0f s, round robin: %v\nCPU s of %.0f s, weir:        %v\n",
		r.before.wall.Seconds(), r.before.cpu, r.after.wall.Seconds(), r.after.cpu)
	if late := r.late(); late > maxLate {
		fmt.Fprintf(w, "\nThe machine was busy with something else: requests were written up to %s s late, and the figures say little.\n", seconds(late))
	}
}

// late is how late requests were written, model time: the 99th percentile of the worse run.
func (r *report) late() time.Duration {
	return max(load.Lateness(r.before.results).P99, load.Lateness(r.after.results).P99)
}

// every is the kind that load.Summarize takes for all of them.
const every = ""

func kind(k string) string {
	if k == every {
		return "all"
	}
	return k
}

func seconds(d time.Duration) string          { return fmt.Sprintf("%.3f", d.Seconds()) }
func percent(share float64) string            { return fmt.Sprintf("%.1f %%", 100*share) }
func failures(o outcome) int                  { return load.Summarize(o.results, every).Errors }
func (r *report) served() float64             { return r.picked / float64(len(r.after.results)) }
func first(o outcome, k string) time.Duration { return load.Summarize(o.results, k).First.P50 }

// maxLate is the lateness, model time, above which a comparison says little: on two free cores the 99th
// percentile is 0.004 s, and with 8 busy loops beside, where weir still wins, 0.04 s.
const maxLate = 50 * time.Millisecond

// verdict is an error that lists what went wrong and where weir did not win; nil for neither.
func (r *report) verdict() error {
	var errs []error
	for name, o := range map[string]outcome{"round robin": r.before, "weir": r.after} {
		for i := range o.results {
			if err := o.results[i].Err; err != nil {
				errs = append(errs, fmt.Errorf("%s: %d requests failed, the first with: %w", name, failures(o), err))
				break
			}
		}
	}
	if s := r.served(); !(s >= minServed) {
		errs = append(errs, fmt.Errorf("the picked replica served %s of the requests, less than %s", percent(s), percent(minServed)))
	}
	for _, k := range []string{every, load.Chat, load.RAG} { // nobody waits for the long jobs alone: weir holds them back
		if b, a := first(r.before, k), first(r.after, k); a >= b {
			errs = append(errs, fmt.Errorf("weir did not win TTFT p50 of %s: %s s against %s s", kind(k), seconds(a), seconds(b)))
		}
	}
	if r.after.hits <= r.before.hits {
		errs = append(errs, fmt.Errorf("weir did not win the hit rate: %s against %s", percent(r.after.hits), percent(r.before.hits)))
	}
	return errors.Join(errs...)
}
