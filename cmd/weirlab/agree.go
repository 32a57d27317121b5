package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/lab/policy"
)

// agreeCell is a workload at a load under some policies. Its times are model time.
type agreeCell struct {
	workload     string
	load         float64       // requests/s of all replicas
	length, warm time.Duration // of the arrivals, and the first of it, whose times to first token do not count
	policies     []string
}

// agreePlan is what is done in virtual and in real time.
type agreePlan struct {
	cells  []agreeCell
	phases int     // simulations of each
	speed  float64 // of the real replicas
	seed   uint64  // of the requests
}

// agreeReplicas is on how many replicas both are run.
const agreeReplicas = 8

// agreePolicies is what Envoy and weir can be told that differs most in virtual time. Not among them is weir with
// balance_on=none, which picks by chance, or by chance sends all to a few: the means of two such runs differ by half, or tenfold.
var agreePolicies = []string{"round-robin", "two-choices", "weir", "weir/balance_on=requests", "weir/affinity=none",
	"weir/affinity=none/balance_on=requests"}

// agreeAll is a load at which no policy has a line that grows and one at which all without affinity have, of each workload; long
// enough that a policy's mean is not made by a few requests, short enough that all take a quarter of an hour. Where W3's
// line grows, only what has an index is told from the rest, so fewer are run.
var agreeAll = agreePlan{
	cells: []agreeCell{
		{"W3", 8, 36 * time.Second, 10 * time.Second, agreePolicies},
		{"W3", 14, 33 * time.Second, 10 * time.Second, agreePolicies[:4]},
		{"W5-35", 28, 32 * time.Second, 10 * time.Second, agreePolicies},
		{"W5-35", 40, 30 * time.Second, 10 * time.Second, agreePolicies},
	},
	phases: 7,
	speed:  1,
	seed:   1,
}

const agreeUsage = `usage: weirlab agree [-doc FILE] [-workload W3,...] [-speed X] [-seed N] [-envoy PATH]

Runs the same requests through the same policies twice: in virtual time, as weirlab sim does, and as HTTP through Envoy
and weir to eight simulated replicas in real time. It prints both, and every pair of policies that differ by a fifth in
virtual time with its sign in real time. It takes a quarter of an hour, on a machine with nothing else to do. Run it
inside the checkout; it needs bin/weir beside itself.

`

// runAgree is the subcommand. Its error says what went wrong, or which pairs differ in sign.
func runAgree(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	plan := agreeAll
	o := options{name: "agree", mode: envoy.Buffered, replicas: agreeReplicas, stderr: stderr}
	flags := flag.NewFlagSet("weirlab agree", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(flags.Output(), agreeUsage); flags.PrintDefaults() }
	doc := flags.String("doc", "", "write the tables into this `file`, between its two marks, and not to stdout")
	workloads := flags.String("workload", "", "only these of the workloads, with commas")
	flags.Float64Var(&plan.speed, "speed", plan.speed, "model seconds per second of the real replicas")
	flags.Uint64Var(&plan.seed, "seed", plan.seed, "of the requests and their times")
	flags.StringVar(&o.envoy, "envoy", "", "`path` of Envoy; without it, as envoy/get.sh finds one")
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := plan.choose(*workloads); err != nil {
		return err
	}
	r := &agreeReport{plan: plan}
	if err := r.run(ctx, o); err != nil {
		return err
	}
	var text bytes.Buffer
	r.print(&text)
	if *doc == "" {
		fmt.Fprint(stdout, text.String())
	} else if err := replaceInFile(*doc, agreeMarks, text.String()); err != nil {
		return err
	}
	return r.verdict()
}

var agreeMarks = marks{"<!-- made by make bench-real -->\n", "<!-- end of what make bench-real made -->\n"}

// choose leaves the cells of some workloads, all for "", and reports what cannot be run.
func (p *agreePlan) choose(workloads string) error {
	if workloads != "" {
		wanted, names := strings.Split(workloads, ","), p.workloads()
		for _, w := range wanted {
			if !slices.Contains(names, w) {
				return fmt.Errorf("-workload: no %q: it runs %s", w, strings.Join(names, " and "))
			}
		}
		p.cells = slices.DeleteFunc(slices.Clone(p.cells), func(c agreeCell) bool { return !slices.Contains(wanted, c.workload) })
	}
	if !(p.speed > 0) {
		return fmt.Errorf("-speed %v is not above 0", p.speed)
	}
	return nil
}

// workloads names those of the cells, which stand together.
func (p *agreePlan) workloads() (names []string) {
	for _, c := range p.cells {
		names = append(names, c.workload)
	}
	return slices.Compact(names)
}

// wire is how a policy of the simulation is had from Envoy and weir.
type wire struct {
	plain    bool // past weir
	balancer string
	lines    []string
}

// onWire returns that, or an error for a policy that exists in virtual time only.
func onWire(name string) (wire, error) {
	parts := strings.Split(name, "/")
	switch {
	case name == "round-robin":
		return wire{plain: true}, nil
	case name == "two-choices":
		return wire{plain: true, balancer: "LEAST_REQUEST"}, nil
	case parts[0] == policy.Weir:
		return wire{lines: parts[1:]}, nil // weir refuses what is no line of its policy, here and in virtual time
	}
	return wire{}, fmt.Errorf("no policy %q on the wire: use round-robin, two-choices, weir or weir/KEY=VALUE", name)
}
