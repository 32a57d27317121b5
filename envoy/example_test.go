package envoy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/envoy"
)

// comment is what YAML ignores of a line, and the space before it.
var comment = regexp.MustCompile(`(^|\s+)#.*$`)

// settings returns the lines of a configuration that say something, without comments and indentation.
func settings(config string) (lines []string) {
	for line := range strings.Lines(config) {
		if line = strings.TrimSpace(comment.ReplaceAllString(strings.TrimRight(line, "\n"), "")); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestExampleIsTheBootstrap holds that the example says what bootstrap.yaml says in its mode, for half its replicas, in
// the same order and nothing else, and that none of the parts that people paste is missing.
func TestExampleIsTheBootstrap(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "examples", "full-duplex.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := string(bootstrap(t, envoy.Params{Mode: envoy.Streamed, Replicas: []string{"127.0.0.1:8001", "127.0.0.1:8002"}},
		breakers, "[{max_connections: 1280, max_pending_requests: 640, max_requests: 640, max_retries: 640}]"))
	example, whole := settings(string(text)), settings(file)
	rest := whole
	for _, line := range example {
		i := slices.Index(rest, line)
		if i < 0 {
			t.Fatalf("bootstrap.yaml does not say, or not in this place: %s", line)
		}
		rest = rest[i+1:]
	}
	if len(example) < 100 {
		t.Errorf("%d lines of settings: it is not whole", len(example))
	}
	parts := 0
	for _, n := range []string{"1", "3", "4"} {
		_, part, begins := strings.Cut(file, "# ---- "+n+" of 4:")
		part, _, ends := strings.Cut(part, "# ---- end of "+n+" of 4")
		_, part, _ = strings.Cut(part, "\n")
		if !begins || !ends {
			t.Fatalf("bootstrap.yaml marks no part %s of 4", n)
		}
		for _, line := range settings(part) {
			parts++
			if !slices.Contains(example, line) {
				t.Errorf("part %s of 4 says %s, the example does not", n, line)
			}
		}
	}
	for line := range strings.Lines(file) {
		if strings.Contains(line, "# 2 of 4") {
			for _, l := range settings(line) {
				parts++
				if !slices.Contains(example, l) {
					t.Errorf("the line of 2 of 4 is not in the example: %s", l)
				}
			}
		}
	}
	if parts < 60 {
		t.Errorf("%d lines in the parts to paste: the marks are wrong", parts)
	}
}

func TestExampleValidates(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "examples", "full-duplex.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	eachVersion(t, func(t *testing.T, path string) {
		if err := envoy.ValidateConfig(t.Context(), path, t.TempDir(), text); err != nil {
			t.Error(err)
		}
	})
}
