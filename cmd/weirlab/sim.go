package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/sim"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// simOptions is what runSim was asked for. Empty lists and zero values are the workload's own.
type simOptions struct {
	workloads, policies []string
	loads               []float64
	trace               string // instead of workloads; loads are speeds then
	seeds, replicas     int
	routers             int
	past                float64
	profile             string
	kv                  []int
	stale, length, warm time.Duration
	events              []sim.Event
	json                bool
	plots               string // folder
}

// runSim simulates each policy under each workload, load and seed, and prints a table, or a line of JSON for each.
func runSim(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := simFlags(args, stderr)
	if err != nil {
		return err
	}
	cells, err := o.cells()
	if err != nil {
		return err
	}
	table := &simTable{w: stdout}
	err = runCells(ctx, cells, stderr, func(rows []simRow) error {
		table.rows = append(table.rows, rows...)
		if o.json {
			return writeJSON(stdout, rows)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if o.plots != "" {
		if err := plotRows(o.plots, table.rows); err != nil {
			return err
		}
	}
	if o.json {
		return nil
	}
	return table.print()
}

// runCells runs the cells on all cores, tells of each one's rows in order, and of how far it is to stderr.
func runCells(ctx context.Context, cells []simCell, stderr io.Writer, tell func([]simRow) error) error {
	begun := time.Now()
	sent := 0
	run := func(i int) ([]simRow, error) { return cells[i].run() }
	return onAllCores(ctx, len(cells), run, func(i int, rows []simRow) error {
		for _, r := range rows {
			sent += r.result.Sent
		}
		c := cells[i]
		fmt.Fprintf(stderr, "%d of %d: %s %s load %g seed %d, %.0f requests/s of wall time\n", i+1, len(cells), c.workload.Name, c.policy, c.load, c.seed,
			float64(sent)/time.Since(begun).Seconds())
		return tell(rows)
	})
}

// allRows runs the cells and returns their rows in order.
func allRows(ctx context.Context, cells []simCell, stderr io.Writer) (rows []simRow, err error) {
	err = runCells(ctx, cells, stderr, func(r []simRow) error { rows = append(rows, r...); return nil })
	return rows, err
}

func simFlags(args []string, stderr io.Writer) (*simOptions, error) {
	o := &simOptions{}
	fs := flag.NewFlagSet("weirlab sim", flag.ContinueOnError)
	fs.SetOutput(stderr)
	o.define(fs)
	workloads := fs.String("workload", "W3", "one or several, with commas, of "+workload.Listing())
	policies := fs.String("policy", "weir,round-robin,oracle", policy.Usage)
	loads := fs.String("load", "", "one or several requests/s of all replicas together (default the workload's own)")
	speeds := fs.String("speed", "", "trace: one or several numbers by which its times are divided; they stand for the load (default 1)")
	if err := parse(fs, args); err != nil {
		return nil, err
	}
	o.workloads, o.policies = strings.Split(*workloads, ","), strings.Split(*policies, ",")
	set := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if o.trace != "" && (set["load"] || set["workload"] && *workloads != traced) {
		return nil, fmt.Errorf("-trace replays a file at -speed: -load is none of it, and -workload only %s", traced)
	}
	if o.trace == "" && set["speed"] {
		return nil, errors.New("-speed is for a -trace")
	}
	if o.trace != "" {
		*loads = cmp.Or(*speeds, "1")
	}
	return o, o.check(*loads)
}

// define defines the flags that each set a field.
func (o *simOptions) define(fs *flag.FlagSet) {
	fs.StringVar(&o.trace, "trace", "", "replay a `file` in the format of Mooncake, of Azure, or of weir (package trace) instead of a workload")
	fs.IntVar(&o.seeds, "seeds", 5, "how many seeds, from 1 up; all policies get the same requests of one")
	fs.IntVar(&o.replicas, "replicas", 0, fmt.Sprintf("1 to %d (default the workload's own)", sim.MaxReplicas))
	fs.IntVar(&o.routers, "routers", 1, fmt.Sprintf("1 to %d, each with a state of its own", sim.MaxRouters))
	fs.Float64Var(&o.past, "past", 0, "share of requests that go past the routers, to the first replica, 0 to 1")
	fs.DurationVar(&o.stale, "stale", 0, "age of a scrape when routers see it")
	fs.DurationVar(&o.length, "length", 0, "model time in which requests arrive (default the workload's own)")
	fs.DurationVar(&o.warm, "warm", 0, "leave out what arrives before (default the workload's own)")
	fs.Func("event", "`list` of die:N@TIME, join:N@TIME, slow:N:SPEED@TIME, mute:N@TIME, freeze:N@TIME (metrics) and restart:N@TIME (a router), N from 0 up or all",
		func(text string) (err error) {
			o.events, err = sim.ParseEvents(text)
			return err
		})
	fs.StringVar(&o.profile, "profile", "", "model and hardware, one or several, with commas, of 8B, 32B and 70B: the first replica's, the second's, and over\nand over; routers take the first one's for all (default the workload's own)")
	fs.Func("kv-tokens", "tokens of KV memory of a replica, one or several `numbers` with commas, like -profile (default the profile's)", o.memory)
	fs.BoolVar(&o.json, "json", false, "a line of JSON for each run instead of a table")
	fs.StringVar(&o.plots, "plot", "", "also write plots over the load, as SVG, into this `folder`")
}

// memory reads the value of -kv-tokens.
func (o *simOptions) memory(list string) error {
	o.kv = nil
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is no number", text)
		}
		o.kv = append(o.kv, n)
	}
	return nil
}

// traced is the workload that stands for whatever -trace replays.
const traced = "W4"

// check reads the loads and reports what no run could take.
func (o *simOptions) check(loads string) error {
	if o.seeds < 1 {
		return fmt.Errorf("-seeds %d is less than 1", o.seeds)
	}
	for text := range strings.SplitSeq(loads, ",") {
		if text == "" {
			continue
		}
		load, err := strconv.ParseFloat(text, 64)
		if err != nil || !(load > 0) || math.IsInf(load, 0) {
			return fmt.Errorf("a load of %q is no number above 0", text)
		}
		o.loads = append(o.loads, load)
	}
	return nil
}
