package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/trace"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

const profileUsage = `usage: weirlab profile -trace FILE [-speed X] | -workload NAME [-load X] [flags]

Tells what traffic is like before anything is tuned for it. Read it from the top:

  in:out     far above 1, prefill is the work, and a cached prefix saves most of it; near 1, decoding is
  repeated   what prompts have in common with earlier ones; near 0, no routing by prefix can help
  ceiling    what one cache could find of it with the pool's memory, and without bound; a wide gap between
             the two says that memory, not routing, is short
  top        which texts are shared; one that all requests have lies in every cache anyway
  knee       the load at which the pool saturates, and what gives in: prefill and KV are helped by cached
             prefixes, decode by replicas only. The last two columns side by side are what routing can win

`

// profileOptions are the flags of profile.
type profileOptions struct {
	trace, workload, profile string
	speed, load              float64
	seed                     uint64
	replicas, kv             int
	json                     bool
}

// runProfile is the subcommand.
func runProfile(_ context.Context, args []string, stdout, stderr io.Writer) error {
	var o profileOptions
	fs := flag.NewFlagSet("weirlab profile", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { fmt.Fprint(fs.Output(), profileUsage); fs.PrintDefaults() }
	fs.StringVar(&o.trace, "trace", "", "`file` in the format of Mooncake, of Azure, or of weir (package trace)")
	fs.Float64Var(&o.speed, "speed", 1, "trace: times are divided by it")
	fs.StringVar(&o.workload, "workload", "", "one of "+workload.Listing())
	fs.Float64Var(&o.load, "load", 0, "workload: requests per second (default the middle one of its usual loads)")
	fs.Uint64Var(&o.seed, "seed", 1, "seed")
	fs.IntVar(&o.replicas, "replicas", 0, "replicas of the pool (default the workload's, or 8)")
	fs.StringVar(&o.profile, "profile", "", "model and hardware: 8B, 32B or 70B (default the workload's, or 32B)")
	fs.IntVar(&o.kv, "kv-tokens", 0, "tokens of KV memory per replica (default the profile's)")
	fs.BoolVar(&o.json, "json", false, "one JSON object instead of a table")
	if err := parse(fs, args); err != nil {
		return err
	}
	pool, source, err := o.source()
	if err != nil {
		return err
	}
	t, err := workload.Measure(source, pool)
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(stdout).Encode(t)
	}
	printTraffic(stdout, t, pool)
	return nil
}

// source opens what is to be looked at, and the pool to look at it for.
func (o *profileOptions) source() (workload.Pool, workload.Source, error) {
	if (o.trace == "") == (o.workload == "") {
		return workload.Pool{}, nil, errors.New("it takes either -trace or -workload")
	}
	usual, err := workload.Info{Profile: "32B", Replicas: 8}, error(nil)
	if o.workload != "" {
		if usual, err = workload.Lookup(o.workload); err != nil {
			return workload.Pool{}, nil, err
		}
	}
	pool := workload.Pool{Replicas: usual.Replicas}
	if o.replicas != 0 {
		pool.Replicas = o.replicas
	}
	name := usual.Profile
	if o.profile != "" {
		name = o.profile
	}
	if pool.Profile, err = step.Lookup(name); err != nil {
		return workload.Pool{}, nil, err
	}
	if o.kv != 0 {
		pool.KVTokens = o.kv
	}
	var s workload.Source
	if o.trace != "" {
		s, err = trace.Open(o.trace, o.speed, o.seed)
		return pool, s, err
	}
	if o.load == 0 {
		o.load = usual.Loads[len(usual.Loads)/2]
	}
	stages, err := usual.Stages(workload.Params{Rate: o.load, Seed: o.seed, Replicas: pool.Replicas})
	if err != nil {
		return pool, nil, err
	}
	return pool, workload.InRow(stages), nil
}
