package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirproxy/weir/pkg/lab/sim"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/trace"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

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
		if o.warm > 0 {
			w.Warm = o.warm
		}
		c := simCell{workload: w, trace: o.trace}
		c.params = workload.Params{Replicas: cmp.Or(o.replicas, w.Replicas), Length: cmp.Or(o.length, w.Length)}
		if o.length > 0 && o.length <= w.Warm {
			return nil, fmt.Errorf("-length %v: the first %v of %s only fill the caches", o.length, w.Warm, w.Name)
		}
		c.cfg = sim.Config{Replicas: c.params.Replicas, Routers: o.routers, Past: o.past, Stale: o.stale, Events: o.events}
		if err := o.equip(&c.cfg, w.Profile); err != nil {
			return nil, err
		}
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

// equip sets what the replicas are: the profiles asked for, else the workload's usual one, over and over, with the KV memory
// asked for. Routers are told the first.
func (o *simOptions) equip(cfg *sim.Config, usual string) error {
	names := strings.Split(cmp.Or(o.profile, usual), ",")
	if n := max(len(names), len(o.kv)); n > max(cfg.Replicas, 1) {
		return fmt.Errorf("%d values for %d replicas: give each replica one, or fewer, which repeat", n, cfg.Replicas)
	}
	for i := range cfg.Replicas {
		p, err := step.Lookup(names[i%len(names)])
		if err != nil {
			return err
		}
		if len(o.kv) > 0 {
			p.KVTokens = o.kv[i%len(o.kv)]
		}
		cfg.Each = append(cfg.Each, p)
	}
	if len(cfg.Each) > 0 { // else the simulation says what is wrong
		cfg.Profile = cfg.Each[0]
	}
	return nil
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
	results, err := sim.Stages(c.cfg, stages, c.span())
	if err != nil {
		return nil, fmt.Errorf("%s, %s, load %g, seed %d: %w", c.workload.Name, c.policy, c.load, c.seed, err)
	}
	var rows []simRow
	for i, r := range results {
		if r != nil && r.Arrived == 0 {
			return nil, fmt.Errorf("%s, load %g: no request comes after the first %v, which only fill the caches", c.workload.Name, c.load, c.span().Warmup)
		}
		if r != nil {
			rows = append(rows, simRow{cell: c, load: stages[i].Rate, result: r})
		}
	}
	return rows, nil
}

// span is what is measured: of a trace at twice its speed, half the time fills the caches.
func (c *simCell) span() sim.Span {
	span := sim.Span{Warmup: c.workload.Warm, Until: c.params.Length}
	if c.trace != "" {
		span.Warmup = time.Duration(float64(span.Warmup) / c.load)
	}
	return span
}

func (c *simCell) stages() ([]workload.Stage, error) {
	if c.trace == "" {
		return c.workload.Stages(c.params)
	}
	src, err := trace.Open(c.trace, c.load, c.seed)
	return []workload.Stage{{Rate: c.load, Source: src}}, err
}
