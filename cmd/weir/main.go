// Command weir picks the replica for each LLM inference request that passes an Envoy.
//
//	weir serve --bootstrap envoy.yaml    run, as the file that Envoy reads too says
//	weir check --bootstrap envoy.yaml    judge the file: what serve refuses, and what Envoy would do to requests
//	weir version
//
// With -c weir.yaml the policy stands in a file of its own; without --bootstrap that file also says where weir
// listens and what its pools are. serve takes a changed policy while it runs, on SIGHUP and when a file changes.
//
// Exit status: 0 done or stopped by SIGINT or SIGTERM, 1 failed or, of check, an error found, 2 called in a wrong way.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/weirproxy/weir/pkg/bootstrap"
)

const usage = `usage: weir COMMAND [flags]

  serve    pick replicas for the Envoy of a bootstrap file; weir serve -h lists the flags
  check    say what is wrong with the files, for weir and for Envoy; weir check -h lists the flags
  version  print the version
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends weir at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole command: it returns the exit status. A command that runs on stops when ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	switch args[0] {
	case "serve":
		return runServe(ctx, args[1:], stderr)
	case "check":
		return runCheck(args[1:], stdout, stderr)
	case "version":
		fmt.Fprintln(stdout, version())
		return 0
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return 0
	}
	fmt.Fprintf(stderr, "weir: unknown command %q\n%s", args[0], usage)
	return 2
}

func runServe(ctx context.Context, args []string, stderr io.Writer) int {
	fs := flag.NewFlagSet("weir serve", flag.ContinueOnError)
	level := slog.LevelInfo
	fs.TextVar(&level, "log-level", slog.LevelInfo, "least `LEVEL` logged: debug, info, warn or error")
	handler := func(o *slog.HandlerOptions) slog.Handler { return slog.NewTextHandler(stderr, o) }
	fs.Func("log-format", "`FORMAT` of log lines, on stderr: text or json (default text)", func(s string) error {
		switch s {
		case "json":
			handler = func(o *slog.HandlerOptions) slog.Handler { return slog.NewJSONHandler(stderr, o) }
		case "text":
		default:
			return errors.New("not text or json")
		}
		return nil
	})
	files, code := parseFlags(fs, args, stderr, nil)
	if files == (bootstrap.Files{}) {
		return code
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // first of all: by default the signal ends the process
	defer signal.Stop(hangup)
	log := slog.New(handler(&slog.HandlerOptions{Level: level}))
	w := newWatch(log, files.Bootstrap, files.Policy) // before they are read, or a change in between were lost
	defer w.close()
	b, err := bootstrap.Load(files)
	if err == nil {
		err = newWeir(files, b, w, hangup, log).serve(ctx)
	}
	return status(err, stderr)
}

// parseFlags returns the files of a command, or none and the exit status. A flag that stands alone, if there is one,
// needs no file.
func parseFlags(fs *flag.FlagSet, args []string, stderr io.Writer, alone *bool) (f bootstrap.Files, code int) {
	fs.SetOutput(stderr)
	fs.StringVar(&f.Bootstrap, "bootstrap", "", "Envoy's bootstrap `FILE`, YAML or JSON")
	fs.StringVar(&f.Policy, "c", "", "`FILE` with the policy by itself, a weir.yaml; without --bootstrap also with listen and pools")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return bootstrap.Files{}, 0
	} else if err != nil {
		return bootstrap.Files{}, 2
	}
	switch {
	case alone != nil && *alone:
		return bootstrap.Files{}, 0
	case f == bootstrap.Files{}:
		fmt.Fprintf(stderr, "%s: --bootstrap or -c is required\n", fs.Name())
	case fs.NArg() > 0:
		fmt.Fprintf(stderr, "%s: unexpected argument %q\n", fs.Name(), fs.Arg(0))
	default:
		return f, 0
	}
	return bootstrap.Files{}, 2
}

// status prints an error, one fault a line, and returns the exit status.
func status(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, err)
	return 1
}

// version is the module version that the build recorded, with the commit where it stands.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "weir unknown"
	}
	text := "weir " + info.Main.Version + " " + info.GoVersion
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			text += " " + s.Value
		}
	}
	return text
}
