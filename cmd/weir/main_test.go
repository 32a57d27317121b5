package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/envoy"
)

// TestMain makes the test binary weir itself when asked, for what only a process shows: signals.
func TestMain(m *testing.M) {
	if os.Getenv("WEIR_TEST_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestExitStatus(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	bad := put("bad.yaml", "node: {metadata: {weir: {max_hold: 0s,\n knne: 1}}}\n")
	shipped := filepath.Join("..", "..", "envoy", "bootstrap.yaml")
	bare := put("bare.yaml", strings.Replace(read(t, "envoy/bootstrap.yaml"), "    weir:", "    other:", 1))
	alone := put("alone.yaml", "listen: unix:weir.sock\npools: [{name: replicas, endpoints: [10.0.0.1:8000]}]\n")
	policy, long := put("policy.yaml", "max_hold: 1m\n"), put("long.yaml", "max_hold: 3599s\n")
	for _, c := range []struct {
		args     []string
		code     int
		out, err string // parts of stdout and stderr; empty: nothing there
	}{
		{nil, 2, "", "usage: weir"},
		{[]string{"run"}, 2, "", `unknown command "run"`},
		{[]string{"help"}, 0, "usage: weir", ""},
		{[]string{"version"}, 0, "weir ", ""},
		{[]string{"serve"}, 2, "", "--bootstrap or -c is required"},
		{[]string{"serve", "-h"}, 0, "", "-log-level"},
		{[]string{"serve", "--bootstrap", shipped, "more"}, 2, "", `unexpected argument "more"`},
		{[]string{"serve", "--bootstrap", shipped, "-log-level", "loud"}, 2, "", "log-level"},
		{[]string{"serve", "--bootstrap", shipped, "-log-format", "xml"}, 2, "", "not text or json"},
		{[]string{"serve", "--bootstrap", "no-such-file"}, 1, "", "no-such-file"},
		{[]string{"serve", "--bootstrap", bad}, 1, "", bad + ":2: unknown key"},
		{[]string{"check", "--bootstrap", bad}, 1, bad + ":1: error: max_hold: 0s is not between", ""},
		{[]string{"check", "--bootstrap", shipped}, 0, shipped + ": no fault", ""},
		{[]string{"check", "--bootstrap", shipped, "-json"}, 0, "[]\n", ""},
		{[]string{"check", "--bootstrap", shipped, "-envoy", "1.35"}, 2, "", "weir needs Envoy 1.36"},
		{[]string{"check", "--bootstrap", shipped, "-envoy", "new"}, 2, "", "is no version"},
		{[]string{"check", "--bootstrap", "no-such-file"}, 1, "", "no-such-file"},
		{[]string{"serve", "-c", bad}, 1, "", bad + ":1: listen: "},
		{[]string{"serve", "--bootstrap", shipped, "-c", policy}, 1, "", shipped + ":21: node.metadata.weir: the policy stands in " + policy + ":1 too"},
		{[]string{"serve", "-c", "no-such-file"}, 1, "", "no-such-file"},
		{[]string{"check", "-c", alone}, 0, alone + ": no fault", ""},
		{[]string{"check", "-c", bad}, 1, bad + ":1: error: listen: ", ""},
		{[]string{"check", "--bootstrap", bare, "-c", policy}, 0, bare + ", " + policy + ": no fault", ""},
		{[]string{"check", "--bootstrap", bare, "-c", long}, 1, "weir's override of max_hold + 5s = 1h0m4s", ""},
		{[]string{"check", "-config", bad}, 2, "", "flag provided but not defined: -config"},
		{[]string{"check"}, 2, "", "--bootstrap or -c is required"},
		{[]string{"check", "-h"}, 0, "", "-bootstrap"},
		{[]string{"check", "-list"}, 0, "hold-timeout", ""},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), c.args, &stdout, &stderr)
		if code != c.code || !holds(stdout.String(), c.out) || !holds(stderr.String(), c.err) {
			t.Errorf("weir %v: status %d, want %d\nstdout: %s\nstderr: %s", c.args, code, c.code, &stdout, &stderr)
		}
	}
}

// TestCheckPrints holds the exit status, text and JSON of a warning and of an error.
func TestCheckPrints(t *testing.T) {
	for _, c := range []struct {
		old, new string
		code     int
		want     string // after the file's name
		rule     string
	}{
		{"[envoy.lb, weir]", "[envoy.lb]", 0, ": warning: metadata_options", "log-namespace"},
		{"[envoy.lb, weir]", "[weir]", 1, ": error: metadata_options", "metadata-namespace"},
	} {
		text, err := envoy.Bootstrap(envoy.Params{})
		if err == nil {
			text, err = envoy.Replace(text, c.old, c.new)
		}
		file := filepath.Join(t.TempDir(), "envoy.yaml")
		if err = errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		line := 1 + bytes.Count(text[:bytes.Index(text, []byte(c.new))], []byte("\n"))
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"check", "--bootstrap", file}, &stdout, &stderr); code != c.code || stderr.Len() > 0 ||
			!strings.HasPrefix(stdout.String(), fmt.Sprint(file, ":", line, c.want)) || !strings.HasSuffix(stdout.String(), " ("+c.rule+")\n") {
			t.Errorf("status %d: %s%s", code, &stdout, &stderr)
		}
		stdout.Reset()
		code := run(t.Context(), []string{"check", "-json", "--bootstrap", file}, &stdout, &stderr)
		var all []struct {
			File, Severity, Text, Rule string
			Line                       int
		}
		if err := json.Unmarshal(stdout.Bytes(), &all); err != nil || code != c.code || len(all) != 1 || all[0].Rule != c.rule || all[0].Line != line || all[0].File != file {
			t.Errorf("status %d, %v: %s", code, err, &stdout)
		}
	}
}

// holds reports whether text has the part, or is empty when the part is.
func holds(text, part string) bool {
	return (part == "") == (text == "") && strings.Contains(text, part)
}
