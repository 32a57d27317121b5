package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/lab/load"
)

// tailPlan is the sizes of a tail. Its times are model time.
type tailPlan struct {
	speed  float64
	seed   uint64
	length time.Duration // of the arrivals of interactive requests beside bulk
	warm   time.Duration // the first of it, which counts for nothing
	cool   time.Duration // the last of it: interactive requests that start there do not count
	bursts int           // the first of them counts for nothing
}

const (
	// tailKV is the profile's own, so that prefill is what lacks.
	tailKV = 421_000
	// tailShare is interactive requests beside bulk, over the capacity for them; tailClients the clients of bulk, sixteen
	// for each replica: some 200,000 tokens there, or 5 s of prefill, so that jobs wait whatever the rest do.
	tailShare   = 0.5
	tailClients = 16 * demoReplicas
	// A burst of three times the capacity for a second has, in its middle, brought more than half a second more than was
	// served: each replica is then just past its knee, which is half a second of prefill, and the giant comes. The rest
	// of the period is for the pool to empty: the burst and the giant take less than 6 s.
	burstShare  = 3.0
	burstOn     = time.Second
	burstPeriod = 6 * time.Second
)

// tailRun is one replay, a column of a table.
type tailRun struct {
	column string
	queue  string // the policy's line
	plain  bool   // past weir
	extra  bool   // with bulk, or with giants
	outcome
}

// The lines of queue that are compared: with none, weir holds nobody.
const noQueue, fifoQueue = "none", "fifo"

// tailReport is what a tail has found.
type tailReport struct {
	plan     tailPlan
	version  string  // of Envoy
	capacity float64 // small requests per second
	mixed    []tailRun
	bursts   []tailRun
}

func newTailReport(p tailPlan) *tailReport {
	return &tailReport{
		plan: p,
		mixed: []tailRun{
			{column: "round robin", queue: noQueue, plain: true, extra: true},
			{column: "none", queue: noQueue, extra: true},
			{column: "fifo", queue: fifoQueue, extra: true},
			{column: "classes", queue: defaultQueue, extra: true},
			{column: "no bulk", queue: defaultQueue},
		},
		bursts: []tailRun{
			{column: "round robin", queue: noQueue, plain: true, extra: true},
			{column: "fifo", queue: fifoQueue, extra: true},
			{column: "classes", queue: defaultQueue, extra: true},
			{column: "no giant", queue: defaultQueue},
		},
	}
}

const tailUsage = `usage: weirlab tail [-seed N] [-envoy PATH]

Starts four simulated replicas, weir and Envoy, and replays the same requests under different lines of queue in weir's
policy: interactive requests beside bulk, and bursts of small prompts with a giant one among them. It prints a table of
each. It takes less than four minutes. Run it inside the checkout; it needs bin/weir beside itself.

`

// runTail is the subcommand. Its error says what went wrong; who waits for whom is for the reader to judge.
func runTail(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	p := tailPlan{speed: 1, length: 20 * time.Second, warm: 8 * time.Second, cool: 2 * time.Second, bursts: 4}
	o := options{name: "tail", mode: envoy.Buffered, kv: tailKV, stderr: stderr}
	flags := flag.NewFlagSet("weirlab tail", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(flags.Output(), tailUsage); flags.PrintDefaults() }
	flags.Uint64Var(&p.seed, "seed", 1, "of the requests and their times")
	flags.StringVar(&o.envoy, "envoy", "", "`path` of Envoy; without it, as envoy/get.sh finds one")
	if err := parse(flags, args); err != nil {
		return err
	}
	r := newTailReport(p)
	if err := r.run(ctx, o); err != nil {
		return err
	}
	r.print(stdout)
	return r.verdict()
}

// run fills the report in. weir reads its policy once, so that each line of queue has a stack of its own.
func (r *tailReport) run(ctx context.Context, o options) (err error) {
	requests := load.Contention{Seed: r.plan.seed, Model: demoModel}
	if r.capacity, err = load.Capacity(o.profile(), demoReplicas, requests.Steady(100, time.Minute)); err != nil {
		return err
	}
	o.speed = r.plan.speed
	for _, o.queue = range []string{noQueue, fifoQueue, defaultQueue} {
		if err := r.runQueue(ctx, o, requests); err != nil {
			return err
		}
	}
	return nil
}

func (r *tailReport) runQueue(ctx context.Context, o options, requests load.Contention) error {
	s, err := start(ctx, o)
	if err != nil {
		return err
	}
	defer s.stop()
	r.version = s.version
	for i := range r.mixed {
		w := work{arrivals: requests.Steady(tailShare*r.capacity, r.plan.length)}
		if r.mixed[i].extra {
			w.clients, w.job = tailClients, requests.Job
		}
		if err := r.mixed[i].replay(s, "bulk, ", w); err != nil {
			return err
		}
	}
	for i := range r.bursts {
		w := work{arrivals: requests.Bursts(r.plan.bursts, burstShare*r.capacity, burstOn, burstPeriod, r.bursts[i].extra)}
		if err := r.bursts[i].replay(s, "giant, ", w); err != nil {
			return err
		}
	}
	return nil
}

// replay is the run on a stack, if that has its line of queue.
func (t *tailRun) replay(s *stack, table string, w work) (err error) {
	if t.queue != s.opts.queue {
		return nil
	}
	url := s.front
	if t.plain {
		url = s.plain
	}
	t.outcome, err = s.replay(table+t.column, url, w)
	return err
}
