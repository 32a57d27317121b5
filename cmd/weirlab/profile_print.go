package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/weirproxy/weir/pkg/lab/workload"
)

// printTraffic is the table for people.
func printTraffic(out io.Writer, t *workload.Traffic, pool workload.Pool) {
	fmt.Fprintf(out, "%d requests in %.0f s, %.2f requests/s; %d replicas %s, %dk tokens of KV each\n\n",
		t.Requests, t.Seconds, t.Rate, pool.Replicas, pool.Name, pool.KVTokens/1000)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "tokens\tmean\tp10\tp50\tp90\tp99\tmax\t")
	for _, s := range []struct {
		name string
		workload.Spread
	}{{"prompt", t.Prompt}, {"answer", t.Output}} {
		fmt.Fprintf(w, "%s\t%.0f\t%d\t%d\t%d\t%d\t%d\t\n", s.name, s.Mean, s.P10, s.P50, s.P90, s.P99, s.Max)
	}
	w.Flush()
	fmt.Fprintf(out, "\nin:out    %.1f prompt tokens per answer token\n", t.InOut)
	fmt.Fprintf(out, "repeated  %.1f %% of prompt tokens stand in blocks of earlier prompts\n", 100*t.Repeated)
	fmt.Fprintf(out, "ceiling   %.1f %% found by one cache with the pool's memory, %.1f %% by one without bound\n",
		100*t.Ceiling, 100*t.Unbounded)
	for i, s := range t.Top {
		name := "top"
		if i > 0 {
			name = ""
		}
		fmt.Fprintf(out, "%-9s %.1f %%: %d tokens up to token %d, in %d requests\n", name, 100*s.Share, s.Tokens, s.End, s.Requests)
	}
	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tround robin\tby prefix, at best")
	each := func(name, format string, of func(workload.Serving) []any) {
		fmt.Fprintf(w, "%s\t"+format+"\t"+format+"\n", append([]any{name}, append(of(t.Spread), of(t.Routed)...)...)...)
	}
	each("found in caches", "%.1f %%", func(s workload.Serving) []any { return []any{100 * s.Hit} })
	each("to compute per request", "%.0f tokens", func(s workload.Serving) []any { return []any{s.Uncached} })
	each("prefill load per replica", "%.2f", func(s workload.Serving) []any { return []any{s.Prefill} })
	each("knee", "%.1f requests/s (%s)", func(s workload.Serving) []any { return []any{s.Knee, s.Binds} })
	if t.Rate > 0 {
		each("knee over this load", "%.2f", func(s workload.Serving) []any { return []any{s.Knee / t.Rate} })
	}
	w.Flush()
}
