package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/lab/load"
	"github.com/weirproxy/weir/pkg/lab/sample"
	"github.com/weirproxy/weir/pkg/lab/sim"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// agreeRow is what one policy made of one cell.
type agreeRow struct {
	cell   agreeCell
	policy string
	sim    []agreeFigures // one for each phase
	real   agreeFigures
	ran    outcome
}

// agreeFigures are of one run. Times are model seconds, to the first token, of the requests that count.
type agreeFigures struct {
	counted        int // requests
	mean, p50, p99 float64
	hits           float64 // share of all prompt tokens, the first requests' too, found in the replicas' caches
	outside        float64 // real: what the mean of all requests, the first ones too, spent outside the replicas
}

// agreeReport is what the comparison has found.
type agreeReport struct {
	plan    agreePlan
	version string // of Envoy
	rows    []agreeRow
}

// agreeFirsts is the wall time that answers have to begin in after the last arrival: past the knee, most of the load's
// surplus over its length.
const agreeFirsts = 2 * time.Minute

// run fills the report in. Each real run has a stack of its own: weir reads its policy once, and remembers prefixes.
func (r *agreeReport) run(ctx context.Context, o options) error {
	o.speed = r.plan.speed
	for _, cell := range r.plan.cells {
		for _, name := range cell.policies {
			row := agreeRow{cell: cell, policy: name}
			if err := row.simulate(r.plan); err != nil {
				return err
			}
			if err := r.replay(ctx, o, &row); err != nil {
				return err
			}
			r.rows = append(r.rows, row)
		}
	}
	return nil
}

// requests is the cell's, from the first.
func (c agreeCell) requests(seed uint64) (workload.Info, workload.Source, error) {
	info, err := workload.Lookup(c.workload)
	if err != nil {
		return info, nil, err
	}
	stages, err := info.Stages(workload.Params{Rate: c.load, Seed: seed, Replicas: agreeReplicas, Length: c.length})
	if err != nil {
		return info, nil, err
	}
	return info, stages[0].Source, nil
}

// simulate runs the cell in virtual time, once for each phase.
func (row *agreeRow) simulate(p agreePlan) error {
	for phase := range p.phases {
		r, err := row.virtual(p.seed, uint64(phase+1))
		if err != nil {
			return err
		}
		row.sim = append(row.sim, agreeFigures{counted: r.Arrived, mean: r.TTFTMean, p50: r.TTFTP50, p99: r.TTFTP99, hits: r.AllHits})
	}
	return nil
}

func (row *agreeRow) virtual(seed, phase uint64) (*sim.Result, error) {
	info, src, err := row.cell.requests(seed)
	if err != nil {
		return nil, err
	}
	profile, err := step.Lookup(info.Profile)
	if err != nil {
		return nil, err
	}
	s, err := sim.New(sim.Config{Profile: profile, Replicas: agreeReplicas, Routers: 1, Policy: row.policy, Seed: phase})
	if err != nil {
		return nil, err
	}
	return s.Run(jitter(src, phase), sim.Span{Warmup: row.cell.warm})
}

// agreeJitter is by how much a request may be late in virtual time, about as much as on the wire.
const agreeJitter = 5 * time.Millisecond

// jittered is a workload whose requests come a little later than they should.
type jittered []*workload.Request

// jitter draws by how much. It may change their order, as on the wire.
func jitter(src workload.Source, phase uint64) *jittered {
	rng := rand.New(rand.NewPCG(phase, 0x11a7e))
	var all jittered
	for q, ok := src.Next(); ok; q, ok = src.Next() {
		q.At += time.Duration(rng.Int64N(int64(agreeJitter)))
		all = append(all, q)
	}
	slices.SortStableFunc(all, func(a, b *workload.Request) int { return cmp.Compare(a.At, b.At) })
	return &all
}

// Next implements workload.Source.
func (j *jittered) Next() (q *workload.Request, ok bool) {
	if len(*j) == 0 {
		return nil, false
	}
	q, *j = (*j)[0], (*j)[1:]
	return q, true
}

// arrivals is the cell's requests as HTTP.
func (c agreeCell) arrivals(seed uint64) (info workload.Info, all []load.Arrival, err error) {
	info, src, err := c.requests(seed)
	if err != nil {
		return info, nil, err
	}
	for q, ok := src.Next(); ok; q, ok = src.Next() {
		all = append(all, load.Completion(demoModel, c.workload, q.At, q.Blocks, q.Prompt, q.Output))
	}
	return info, all, nil
}

// replay runs the cell in real time.
func (r *agreeReport) replay(ctx context.Context, o options, row *agreeRow) error {
	info, arrivals, err := row.cell.arrivals(r.plan.seed)
	if err != nil {
		return err
	}
	way, err := onWire(row.policy)
	if err != nil {
		return err
	}
	o.hardware, o.balancer, o.lines = info.Profile, way.balancer, way.lines
	s, err := start(ctx, o)
	if err != nil {
		return err
	}
	defer s.stop()
	r.version = s.version
	url := s.front
	if way.plain {
		url = s.plain
	}
	name := fmt.Sprintf("%s at %g/s, %s", row.cell.workload, row.cell.load, row.policy)
	if row.ran, err = s.replay(name, url, work{arrivals: arrivals, firsts: agreeFirsts}); err != nil {
		return err
	}
	row.real = firstTokens(row.ran.results, row.cell.warm)
	row.real.hits = row.ran.hits
	row.real.outside = firstTokens(row.ran.results, 0).mean - row.ran.inside.Seconds()
	return nil
}

// firstTokens sums up the results from warm on, cut or not.
func firstTokens(results []load.Result, warm time.Duration) (f agreeFigures) {
	var times []float64
	sum := 0.0
	for i := range results {
		x := &results[i]
		if x.At < warm {
			continue
		}
		f.counted++
		if x.First > 0 {
			times = append(times, x.First.Seconds())
			sum += x.First.Seconds()
		}
	}
	if len(times) == 0 {
		return f
	}
	slices.Sort(times)
	f.mean, f.p50, f.p99 = sum/float64(len(times)), sample.Rank(times, 50), sample.Rank(times, 99)
	return f
}
