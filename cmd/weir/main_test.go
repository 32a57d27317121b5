package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("node: {metadata: {weir: {max_held: 0,\n knne: 1}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shipped := filepath.Join("..", "..", "envoy", "bootstrap.yaml")
	for _, c := range []struct {
		args     []string
		code     int
		out, err string // parts of stdout and stderr; empty: nothing there
	}{
		{nil, 2, "", "usage: weir"},
		{[]string{"run"}, 2, "", `unknown command "run"`},
		{[]string{"help"}, 0, "usage: weir", ""},
		{[]string{"version"}, 0, "weir ", ""},
		{[]string{"serve"}, 2, "", "--bootstrap is required"},
		{[]string{"serve", "-h"}, 0, "", "-log-level"},
		{[]string{"serve", "--bootstrap", shipped, "more"}, 2, "", `unexpected argument "more"`},
		{[]string{"serve", "--bootstrap", shipped, "-log-level", "loud"}, 2, "", "log-level"},
		{[]string{"serve", "--bootstrap", shipped, "-log-format", "xml"}, 2, "", "not text or json"},
		{[]string{"serve", "--bootstrap", "no-such-file"}, 1, "", "no-such-file"},
		{[]string{"serve", "--bootstrap", bad}, 1, "", bad + ":2: unknown key"},
		{[]string{"check", "--bootstrap", bad}, 1, "", bad + ":1: max_held: 0 is not between"},
		{[]string{"check", "--bootstrap", shipped}, 0, "weir.sock", ""},
		{[]string{"check"}, 2, "", "--bootstrap is required"},
		{[]string{"check", "-h"}, 0, "", "-bootstrap"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), c.args, &stdout, &stderr)
		if code != c.code || !holds(stdout.String(), c.out) || !holds(stderr.String(), c.err) {
			t.Errorf("weir %v: status %d, want %d\nstdout: %s\nstderr: %s", c.args, code, c.code, &stdout, &stderr)
		}
	}
}

// holds reports whether text has the part, or is empty when the part is.
func holds(text, part string) bool {
	return (part == "") == (text == "") && strings.Contains(text, part)
}
