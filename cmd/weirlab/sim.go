package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/sim"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/trace"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// simOptions is what runSim was asked for. Empty lists and zero values are the workload's own.
type simOptions struct {
	workloads, policies []string
	loads               []float64
	trace               string // instead of workloads; loads are speeds then
	seeds, replicas     int
	routers             int
	profile             string
	kv                  int
	stale, length       time.Duration
	json                bool
	plots               string // folder
}

// runSim simulates each policy under each workload, load and seed, and prints a table, or a line of JSON for each.
func runSim(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := simFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
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

func simFlags(args []string, stderr io.Writer) (*simOptions, error) {
	o := &simOptions{}
	fs := flag.NewFlagSet("weirlab sim", flag.ContinueOnError)
	fs.SetOutput(stderr)
	workloads := fs.String("workload", "W3", "one or several, with commas, of "+workload.Listing())
	policies := fs.String("policy", "weir,round-robin,oracle", policy.Usage)
	loads := fs.String("load", "", "one or several requests/s of all replicas together (default the workload's own)")
	fs.StringVar(&o.trace, "trace", "", "replay a `file` in the format of Mooncake, of Azure, or of weir (package trace) instead of a workload")
	speeds := fs.String("speed", "", "trace: one or several numbers by which its times are divided; they stand for the load (default 1)")
	fs.IntVar(&o.seeds, "seeds", 5, "how many seeds, from 1 up; all policies get the same requests of one")
	fs.IntVar(&o.replicas, "replicas", 0, fmt.Sprintf("1 to %d (default the workload's own)", sim.MaxReplicas))
	fs.IntVar(&o.routers, "routers", 1, fmt.Sprintf("1 to %d, each with a state of its own", sim.MaxRouters))
	fs.DurationVar(&o.stale, "stale", 0, "age of a scrape when routers see it")
	fs.DurationVar(&o.length, "length", 0, "model time in which requests arrive (default the workload's own)")
	fs.StringVar(&o.profile, "profile", "", "model and hardware: 8B, 32B or 70B (default the workload's own)")
	fs.IntVar(&o.kv, "kv-tokens", 0, "tokens of KV memory per replica (default the profile's)")
	fs.BoolVar(&o.json, "json", false, "a line of JSON for each run instead of a table")
	fs.StringVar(&o.plots, "plot", "", "also write plots over the load, as SVG, into this `folder`")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("it takes flags only, not %q", fs.Arg(0))
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

// infos is the workloads asked for, or the trace as one.
func (o *simOptions) infos() (infos []workload.Info, err error) {
	if o.trace != "" {
		name := filepath.Base(o.trace)
		if o.workloads[0] == traced {
			name = traced
		}
		return []workload.Info{{Name: name, Profile: "32B", Replicas: 8, Warm: traceWarm}}, nil
	}
	for _, name := range o.workloads {
		w, err := workload.Lookup(name)
		if err != nil {
			return nil, err
		}
		infos = append(infos, w)
	}
	return infos, nil
}

// traceWarm is how much of a trace's time fills the caches before anything is measured.
const traceWarm = 5 * time.Minute

// simCell is one run.
type simCell struct {
	workload workload.Info
	trace    string // replayed instead, if not empty
	params   workload.Params
	cfg      sim.Config
	policy   string
	load     float64
	seed     uint64
}

// cells lists the runs, those of one workload, load and policy next to each other.
func (o *simOptions) cells() (cells []simCell, err error) {
	infos, err := o.infos()
	if err != nil {
		return nil, err
	}
	for _, w := range infos {
		c := simCell{workload: w, trace: o.trace}
		c.params = workload.Params{Replicas: cmp.Or(o.replicas, w.Replicas), Length: cmp.Or(o.length, w.Length)}
		if o.length > 0 && o.length <= w.Warm {
			return nil, fmt.Errorf("-length %v: the first %v of %s only fill the caches", o.length, w.Warm, w.Name)
		}
		c.cfg = sim.Config{Replicas: c.params.Replicas, Routers: o.routers, Stale: o.stale}
		if c.cfg.Profile, err = step.Lookup(cmp.Or(o.profile, w.Profile)); err != nil {
			return nil, err
		}
		c.cfg.Profile.KVTokens = cmp.Or(o.kv, c.cfg.Profile.KVTokens)
		loads := o.loads
		if len(loads) == 0 {
			loads = w.Loads
		}
		for _, load := range loads {
			for _, p := range o.policies {
				for seed := uint64(1); seed <= uint64(o.seeds); seed++ {
					cells = append(cells, c.at(load, p, seed))
				}
			}
		}
	}
	return cells, nil
}

// at is the same cell at another load, under another policy, with another seed.
func (c simCell) at(load float64, policy string, seed uint64) simCell {
	c.load, c.policy, c.seed = load, policy, seed
	c.cfg.Policy, c.cfg.Seed = policy, seed
	c.params.Rate, c.params.Seed = load, seed
	return c
}

// run simulates one cell: a row for each stage that is measured.
func (c *simCell) run() ([]simRow, error) {
	stages, err := c.stages()
	if err != nil {
		return nil, err
	}
	span := sim.Span{Warmup: c.workload.Warm, Until: c.params.Length}
	if c.trace != "" {
		span.Warmup = time.Duration(float64(span.Warmup) / c.load)
	}
	results, err := sim.Stages(c.cfg, stages, span)
	if err != nil {
		return nil, fmt.Errorf("%s, %s, load %g, seed %d: %w", c.workload.Name, c.policy, c.load, c.seed, err)
	}
	var rows []simRow
	for i, r := range results {
		if r != nil {
			rows = append(rows, simRow{cell: c, load: stages[i].Rate, result: r})
		}
	}
	return rows, nil
}

func (c *simCell) stages() ([]workload.Stage, error) {
	if c.trace == "" {
		return c.workload.Stages(c.params)
	}
	src, err := trace.Open(c.trace, c.load, c.seed)
	return []workload.Stage{{Rate: c.load, Source: src}}, err
}
