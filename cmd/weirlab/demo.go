package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/lab/load"
	"github.com/weirproxy/weir/pkg/lab/step"
)

const (
	demoReplicas = 4
	demoModel    = "demo-8b"
	// demoKV is the KV tokens of each replica, less than the profile's 421,000 so that what must be cached
	// exceeds one replica's memory in a run of a minute: an H100 with a smaller share of memory for KV.
	demoKV = 240_000
	// demoSpeed and demoLength make a replay of 30 s. At speed 2, Envoy, weir, the replicas and the generator
	// together take 0.6 of a core, and a millisecond that one of them waits for a core is two in the table.
	demoSpeed  = 2.0
	demoLength = 60 * time.Second // model time
	// demoShare is the offered load over the round-robin capacity: busy, but round robin holds it.
	demoShare = 0.8
	demoSeed  = 1
)

// options say what a stack is made of.
type options struct {
	name     string // of the subcommand
	keep     bool
	mode     envoy.Mode
	queue    string   // the line of the policy; "" for the default
	lines    []string // more lines of the policy, each KEY=VALUE
	balancer string   // lb_policy of the listener without weir, in Envoy's words; "" for ROUND_ROBIN
	envoy    string
	hardware string // the replicas' step profile; "" for 8B
	replicas int    // 0 for demoReplicas
	kv       int    // tokens of KV of each replica; 0 for the profile's
	speed    float64

	stderr io.Writer
}

const demoUsage = `usage: weirlab demo [-keep] [-mode buffered|streamed] [-envoy PATH]

Starts four simulated replicas, weir and Envoy, replays the same arrivals first without weir (round robin) and
then through weir, and prints one table. With -keep it starts them in real time, replays nothing, prints how
to talk to them and stays until it is interrupted. Run it inside the checkout; it needs bin/weir beside itself.

`

// runDemo is the subcommand. Its error says what went wrong or where weir did not win.
func runDemo(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := options{name: "demo", kv: demoKV, speed: demoSpeed, stderr: stderr}
	flags := flag.NewFlagSet("weirlab demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(flags.Output(), demoUsage); flags.PrintDefaults() }
	flags.BoolVar(&o.keep, "keep", false, "stay in the foreground for requests by hand, without a replay")
	mode := flags.String("mode", string(envoy.Buffered), "body mode of Envoy: buffered or streamed")
	flags.StringVar(&o.envoy, "envoy", "", "`path` of Envoy; without it, as envoy/get.sh finds one")
	if err := parse(flags, args); err != nil {
		return err
	}
	o.mode = envoy.Mode(*mode)
	if o.mode != envoy.Buffered && o.mode != envoy.Streamed {
		return fmt.Errorf("-mode %q: it is %s (BUFFERED) or %s (FULL_DUPLEX_STREAMED)", o.mode, envoy.Buffered, envoy.Streamed)
	}
	if o.keep {
		o.speed = 1 // what people see with curl takes as long as on the real machine
	}
	s, err := start(ctx, o)
	if err != nil {
		return err
	}
	defer s.stop()
	if o.keep {
		return s.keep(ctx, stdout)
	}
	return compare(s, stdout)
}

// profile is the replicas' step model.
func (o *options) profile() step.Profile {
	p, err := step.Lookup(cmp.Or(o.hardware, "8B"))
	if err != nil {
		panic(err) // the name is a constant, or a workload's
	}
	p.KVTokens = cmp.Or(o.kv, p.KVTokens)
	return p
}

// compare replays the arrivals both ways and prints the table.
func compare(s *stack, out io.Writer) error {
	mix := load.Mix{Seed: demoSeed, Model: demoModel, Rate: 25, Length: demoLength}
	capacity, err := load.Capacity(s.opts.profile(), demoReplicas, mix.Arrivals())
	if err != nil {
		return err
	}
	mix.Rate = demoShare * capacity
	arrivals := mix.Arrivals()
	s.progress("round-robin capacity %.1f requests/s, by the step model in virtual time; offering %.1f", capacity, mix.Rate)
	before, err := s.replay("round robin", s.plain, work{arrivals: arrivals})
	if err != nil {
		return err
	}
	after, err := s.replay("weir", s.front, work{arrivals: arrivals})
	if err != nil {
		return err
	}
	picked, err := s.served(len(arrivals))
	if err != nil {
		return err
	}
	r := report{mix: mix, capacity: capacity, mode: s.opts.mode, version: s.version, before: before, after: after, picked: picked}
	r.print(out)
	return r.verdict()
}

// progress tells on standard error what goes on.
func (s *stack) progress(format string, args ...any) {
	fmt.Fprintf(s.opts.stderr, s.opts.name+": "+format+"\n", args...)
}

// keep prints how to reach everything and waits for the end of ctx or of a process.
func (s *stack) keep(ctx context.Context, out io.Writer) error {
	body := `{"model": "` + demoModel + `", "messages": [{"role": "user", "content": "What is a weir?"}], "max_tokens": 40`
	curl := "curl -sS " + s.front + "/v1/chat/completions -H 'content-type: application/json' "
	fmt.Fprintf(out, `
a chat           %s-d '%s}'
streamed         %s-N -d '%s, "stream": true}'
as bulk          %s-H 'x-weir-class: bulk' -d '%s}'
without weir     the same at %s

Envoy's admin    http://%s/   access log: %s/access.log
weir's metrics   http://%s/metrics   its view of the replicas: http://%s/debug/pool

Ctrl-C ends it all.
`, curl, body, curl, body, curl, body, s.plain, s.envoy.Admin, s.dir, s.weirAdmin, s.weirAdmin)
	<-s.ctx.Done()
	if ctx.Err() != nil {
		return nil // that is how it is meant to end
	}
	return context.Cause(s.ctx)
}
