package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/lab/load"
)

// TestAgreeThroughEnvoy runs little of the comparison. Its times are noise; the requests, their hits and the rows are not.
func TestAgreeThroughEnvoy(t *testing.T) {
	path := realStack(t)
	r := &agreeReport{plan: agreePlan{
		cells: []agreeCell{{"W5-35", 12, 6 * time.Second, time.Second, []string{"two-choices", "weir/queue=none"}}}, phases: 3, speed: 2, seed: 1,
	}}
	var log bytes.Buffer
	if err := r.run(t.Context(), options{name: "agree", mode: envoy.Buffered, replicas: agreeReplicas, envoy: path, stderr: &log}); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	for i := range r.rows {
		checkAgrees(t, &r.rows[i])
	}
	// In virtual time weir hits 0.14 and two choices 0.04: half of what is between them tells whether weir sees the prefixes.
	if r.rows[1].real.hits < r.rows[0].real.hits+0.05 {
		t.Errorf("hit rates %.3f of two choices and %.3f of weir: the prefixes are not the workload's", r.rows[0].real.hits, r.rows[1].real.hits)
	}
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{"\n## W5-35 at 12 requests/s\n", "\n| two-choices | ", "\n| weir/queue=none | ", " pairs agree in sign. Mean TTFT: "} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("not one %q in\n%s", want, out.String())
		}
	}
}

// checkAgrees holds that a row's real run has the requests and about the hits of those in virtual time, each with a beginning.
func checkAgrees(t *testing.T, row *agreeRow) {
	t.Helper()
	// Jitter moves a request over the end of the warm-up.
	if n := row.real.counted; n == 0 || max(n-row.sim[0].counted, row.sim[0].counted-n) > 1 {
		t.Errorf("%s: %d requests count, in virtual time %d", row.policy, n, row.sim[0].counted)
	}
	// They are within 0.02. On a busy machine answers come late and other replicas are picked, hence 0.1. Texts that were all alike
	// would hit nearly all, and those with nothing in common fail the test's own comparison.
	if got, want := row.real.hits, row.simulated(hitsOf); math.Abs(got-want) > 0.1 {
		t.Errorf("%s: hit rate %.3f, in virtual time %.3f", row.policy, got, want)
	}
	for _, x := range row.ran.results {
		if x.First <= 0 || x.Status != 200 || x.Replica == "" || x.Err != nil && !errors.Is(x.Err, context.Canceled) {
			t.Fatalf("%s: %+v", row.policy, x)
		}
	}
}

// TestAgreeSpeaksTheWorkload holds that a router reads of the wire what it is handed in virtual time.
func TestAgreeSpeaksTheWorkload(t *testing.T) {
	for _, cell := range agreeAll.cells {
		cell.length = 5 * time.Second
		_, src, err := cell.requests(3)
		if err != nil {
			t.Fatal(err)
		}
		_, arrivals, err := cell.arrivals(3)
		if err != nil {
			t.Fatal(err)
		}
		to, from := map[uint64]uint64{}, map[uint64]uint64{}
		for i := range arrivals {
			q, _ := src.Next()
			seq, err := load.Sequence(&arrivals[i])
			if err != nil {
				t.Fatal(err)
			}
			if q.At != arrivals[i].At || q.Prompt != seq.Prompt || q.Output != seq.Output || len(seq.Hashes) != q.Prompt/64*4 {
				t.Fatalf("%s, request %d: %v, %d and %d tokens, on the wire %v, %d and %d", cell.workload, i, q.At, q.Prompt, q.Output, arrivals[i].At, seq.Prompt, seq.Output)
			}
			for b := 0; b < len(seq.Hashes); b += 4 { // a block of the chain
				virtual, wire := q.Blocks[b+3], seq.Hashes[b]
				if known, ok := to[virtual]; ok && known != wire {
					t.Fatalf("%s, request %d: a prefix has two texts", cell.workload, i)
				}
				if known, ok := from[wire]; ok && known != virtual {
					t.Fatalf("%s, request %d: two prefixes have one text", cell.workload, i)
				}
				to[virtual], from[wire] = wire, virtual
			}
		}
		if _, more := src.Next(); more || len(arrivals) == 0 {
			t.Errorf("%s: %d requests on the wire are not all", cell.workload, len(arrivals))
		}
	}
}

// agreed is a report of two policies that differ twofold in virtual time, and a third between them.
func agreed() *agreeReport {
	cell := agreeCell{"W3", 8, time.Minute, time.Second, []string{"round-robin", "weir", "two-choices"}}
	r := &agreeReport{plan: agreePlan{cells: []agreeCell{cell}, phases: 3, speed: 1, seed: 1}}
	for i, mean := range []float64{0.4, 0.2, 0.45} {
		r.rows = append(r.rows, agreeRow{
			cell: cell, policy: cell.policies[i], sim: []agreeFigures{{mean: mean}, {mean: mean * 0.9}, {mean: mean * 1.1}},
			real: agreeFigures{mean: mean * 1.05}, ran: outcome{results: []load.Result{{First: 1}}},
		})
	}
	return r
}

func TestAgreePairs(t *testing.T) {
	for name, tc := range map[string]struct {
		change    func(*agreeReport)
		sum, want string // in the closing line and the verdict; "" for none
	}{
		"all agree":    {func(*agreeReport) {}, "2 of 2 pairs agree in sign. Mean TTFT: 3 of 3 runs within 10 %, the farthest off by 5 % (", ""},
		"one does not": {func(r *agreeReport) { r.rows[1].real.mean = 0.44 }, "1 of 2 pairs agree in sign. Mean TTFT: 2 of 3 runs within 10 %, the farthest off by 120 % (W3 at 8/s, weir)", "of round-robin is 2.00 times that of weir in virtual time, and 0.95 times in real time"},
		"close ones":   {func(r *agreeReport) { r.rows[2].real.mean = 0.3 }, "2 of 2 pairs", ""},
		"no text":      {func(r *agreeReport) { r.rows[0].ran.results[0] = load.Result{} }, "2 of 2 pairs", "round-robin: no answer: no text, and no error"},
		"no answer":    {func(r *agreeReport) { r.rows[0].ran.results[0] = load.Result{Err: errors.New("reset")} }, "2 of 2 pairs", "round-robin: no answer: reset"},
		"other cells":  {func(r *agreeReport) { r.rows[1].cell.load = 9 }, "0 of 0 pairs", ""},
	} {
		r := agreed()
		tc.change(r)
		var out bytes.Buffer
		if r.printSum(&out); !strings.Contains(out.String(), tc.sum) {
			t.Errorf("%s: %q, want %q", name, out.String(), tc.sum)
		}
		if err := r.verdict(); tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	var out bytes.Buffer
	agreed().print(&out)
	for _, want := range []string{
		"| round-robin | 0.400 | 0.360 to 0.440 | 0.420 | 1.05 |", "| W3 | 8 | two-choices | weir | 2.25 | 2.25 | yes |\n| W3 | 8 | round-robin | weir | 2.00 | 2.00 | yes |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestFirstTokens(t *testing.T) {
	second := time.Second
	f := firstTokens([]load.Result{
		{At: 0, First: 9 * second}, {At: second, First: second}, {At: second, First: 3 * second, Err: context.Canceled}, {At: 2 * second, Err: errors.New("reset")},
	}, second)
	if want := (agreeFigures{counted: 3, mean: 2, p50: 1, p99: 3}); f != want {
		t.Errorf("%+v, want %+v", f, want)
	}
	if f := firstTokens(nil, 0); f != (agreeFigures{}) {
		t.Errorf("of nothing %+v", f)
	}
}

func TestAgreeRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"-workload W6":     `no "W6": it runs W3 and W5-35`,
		"-workload W3,W99": `no "W99"`,
		"-workload W3,":    `no ""`,
		"-speed 0":         "not above 0",
		"-speed NaN":       "not above 0",
		"-phases 3":        "not defined",
		"W3":               "flags only",
		"-envoy /no/such":  "no such file",
	} {
		var log bytes.Buffer
		if err := runAgree(t.Context(), strings.Fields(args), &log, &log); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	for _, name := range []string{"sticky", "oracle", "weird"} {
		if _, err := onWire(name); err == nil {
			t.Errorf("%s is on the wire", name)
		}
	}
}

// TestChangedLines holds that the file says what the options say, and nothing else changes.
func TestChangedLines(t *testing.T) {
	config, err := envoy.Bootstrap(envoy.Params{})
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{opts: options{queue: "fifo", lines: []string{"affinity=none", "balance_on=requests"}, balancer: "LEAST_REQUEST"}}
	got, err := s.changed(config)
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	lines := strings.Split(string(config), "\n")
	for i, line := range strings.Split(string(got), "\n") {
		if line != lines[i] {
			changed = append(changed, strings.TrimSpace(line))
		}
	}
	if want := "balance_on: requests;affinity: none;queue: fifo;lb_policy: LEAST_REQUEST"; strings.Join(changed, ";") != want {
		t.Errorf("changed %v, want %s", changed, want)
	}
	if _, err := (&stack{opts: options{lines: []string{"afinity=none"}}}).changed(config); err == nil || !strings.Contains(err.Error(), `no line "afinity"`) {
		t.Errorf("a key that the policy has not: %v", err)
	}
}
