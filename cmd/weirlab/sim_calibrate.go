package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/weirproxy/weir/pkg/lab/sim"
)

// runCalibrate prints docs/calibration.md.
func runCalibrate(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("weirlab calibrate", flag.ContinueOnError)
	fs.SetOutput(stderr)
	if err := parse(fs, args); err != nil {
		return err
	}
	type job struct {
		policy string
		b      time.Duration
	}
	var jobs []job
	for _, p := range sim.LadderPolicies {
		for _, b := range sim.LadderB {
			jobs = append(jobs, job{p, b})
		}
	}
	var ladders []*sim.Ladder
	err := onAllCores(ctx, len(jobs), func(i int) (*sim.Ladder, error) {
		return sim.RunLadder(jobs[i].policy, jobs[i].b)
	}, func(i int, l *sim.Ladder) error {
		ladders = append(ladders, l)
		_, err := fmt.Fprintf(stderr, "%d of %d: %s, b = %v\n", i+1, len(jobs), l.Policy, l.B)
		return err
	})
	if err != nil {
		return err
	}
	var doc bytes.Buffer
	sim.WriteCalibration(&doc, ladders)
	_, err = stdout.Write(doc.Bytes())
	return err
}
