// Command weirlab is weir's laboratory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// command is one of weirlab's programs. run gets the arguments after its name, ends with ctx, and returns
// why it failed.
type command struct {
	name, does string
	run        func(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

// commands is all of them, in the order in which the usage lists them.
var commands = []command{
	{"replica", "serve simulated vLLM replicas", runReplica},
	{"demo", "compare weir with round robin on a real Envoy", runDemo},
	{"tail", "compare the lines of queue: bulk and giants", runTail},
	{"profile", "tell what a trace or a workload is like", runProfile},
	{"sim", "compare policies in virtual time", runSim},
	{"bench-policy", "compare weir with every policy: README's table", runBenchPolicy},
	{"lessons", "measure the six lessons: docs/lessons.md", runLessons},
	{"targets", "measure what weir is to reach: docs/targets.md", runTargets},
	{"knee", "compare the gate and the knee with others: docs/knee.md", runKnee},
	{"errors", "measure how far predictions are off: docs/errors.md", runErrors},
	{"agree", "compare virtual time with real time: docs/realtime.md", runAgree},
	{"calibrate", "replay a published run in virtual time", runCalibrate},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit status: 0, 1 when a command failed, 2 when none could be told.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	for _, c := range commands {
		if len(args) == 0 || args[0] != c.name {
			continue
		}
		if err := c.run(ctx, args[1:], stdout, stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(stderr, "weirlab %s: %v\n", c.name, err)
			return 1
		}
		return 0
	}
	fmt.Fprintln(stderr, "usage: weirlab <command> [flags]")
	for _, c := range commands {
		fmt.Fprintf(stderr, "  %-12s %s\n", c.name, c.does)
	}
	return 2
}

// parse reads the flags of a command, which takes nothing else. flag.ErrHelp: it was asked for them, and they are printed.
func parse(fs *flag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("it takes flags only, not %q", fs.Arg(0))
	}
	return nil
}
