package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/weirproxy/weir/pkg/bootstrap"
)

func runCheck(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("weir check", flag.ContinueOnError)
	envoy := bootstrap.Oldest
	fs.TextVar(&envoy, "envoy", bootstrap.Oldest, "oldest `VERSION` of Envoy that is to run the file")
	asJSON := fs.Bool("json", false, "print a JSON array of findings: file, line, severity, text, rule")
	list := fs.Bool("list", false, "list the rules and stop")
	files, code := parseFlags(fs, args, stderr, list)
	switch {
	case code == 0 && *list:
		listRules(stdout)
		return 0
	case files == bootstrap.Files{}:
		return code
	}
	all, err := bootstrap.Check(files, envoy)
	if err != nil {
		return status(err, stderr)
	}
	if *asJSON {
		err = printJSON(stdout, all)
	} else {
		printText(stdout, files, all)
	}
	if err == nil && slices.ContainsFunc(all, func(f bootstrap.Finding) bool { return f.Severity == bootstrap.Error }) {
		return 1
	}
	return status(err, stderr)
}

func printText(w io.Writer, files bootstrap.Files, all []bootstrap.Finding) {
	for _, f := range all {
		fmt.Fprintln(w, f)
	}
	if len(all) == 0 {
		fmt.Fprintf(w, "%s: no fault\n", files)
	}
}

// printJSON prints an array on one line, an empty one for no finding.
func printJSON(w io.Writer, all []bootstrap.Finding) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if all == nil {
		all = []bootstrap.Finding{}
	}
	return enc.Encode(all)
}

func listRules(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range bootstrap.Rules() {
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.Name, r.Severity, r.Why)
	}
	t.Flush()
}
