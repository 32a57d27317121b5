package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestReadmeCommands keeps what README tells people to type true: each make target is in the Makefile, weir knows each
// of its commands and their flags, and each file that a link names is there.
func TestReadmeCommands(t *testing.T) {
	readme, makefile := read(t, "README.md"), read(t, "Makefile")
	targets, commands := 0, 0
	typed := regexp.MustCompile("(?m)^    .*$|`[^`\n]+`")
	for _, line := range typed.FindAllString(readme, -1) {
		line, _, _ = strings.Cut(strings.Trim(line, "` "), "#")
		words := strings.Fields(line)
		switch {
		case len(words) > 1 && words[0] == "make":
			targets++
			if !regexp.MustCompile(`(?m)^` + words[1] + `:.*## `).MatchString(makefile) {
				t.Errorf("%s: the Makefile has no such target with a line of help", line)
			}
			for _, w := range words[2:] {
				if name, _, ok := strings.Cut(w, "="); !ok || !strings.Contains(makefile, "$("+name+")") {
					t.Errorf("%s: the Makefile does not know %s", line, w)
				}
			}
		case len(words) > 1 && (words[0] == "weir" || words[0] == "bin/weir"):
			commands++
			checkCommand(t, line, words[1:])
		}
	}
	if targets < 4 || commands < 2 {
		t.Errorf("%d make targets and %d commands of weir in README: it is not read as it is written", targets, commands)
	}
	for _, link := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(readme, -1) {
		if _, err := os.Stat(filepath.Join("..", "..", link[1])); err != nil && !strings.Contains(link[1], "://") {
			t.Errorf("README links %s: %v", link[1], err)
		}
	}
}

func checkCommand(t *testing.T, line string, words []string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{words[0], "-h"}, &stdout, &stderr)
	help := stdout.String() + stderr.String()
	if code != 0 || strings.Contains(help, "unknown command") {
		t.Errorf("%s: %s", line, help)
	}
	for _, w := range words[1:] {
		if name := strings.TrimLeft(w, "-"); name != w && !slices.Contains(strings.Fields(help), "-"+name) {
			t.Errorf("%s: weir %s has no flag %s", line, words[0], w)
		}
	}
}

// TestCommandsInTheFiles holds the same for the comments of the configurations, and that weir takes these.
func TestCommandsInTheFiles(t *testing.T) {
	for _, name := range []string{"envoy/bootstrap.yaml", "examples/full-duplex.yaml"} {
		found := regexp.MustCompile(`(?m)^#   weir (.*)$`).FindAllStringSubmatch(read(t, name), -1)
		if len(found) == 0 {
			t.Errorf("%s says nothing of weir's commands", name)
		}
		for _, m := range found {
			checkCommand(t, m[1], strings.Fields(m[1]))
		}
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"check", "--bootstrap", filepath.Join("..", "..", name)}, &stdout, &stderr); code != 0 {
			t.Errorf("weir check of %s: %d, %s", name, code, &stderr)
		}
	}
}
