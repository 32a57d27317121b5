package envoy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirproxy/weir/envoy"
)

var (
	allModes = []envoy.Mode{envoy.Buffered, envoy.Streamed, envoy.Partial, envoy.PlainStreamed, envoy.None}
	modesDoc = filepath.Join("..", "docs", "modes.md")
)

// Of two prompts Envoy's buffer holds one: that is where the modes differ.
const (
	smallPrompt, largePrompt = 64_000, 400_000
	envoyBuffer              = 128 << 10
)

// oldClients has Envoy take HTTP/1.0.
var oldClients = []string{
	"          codec_type: AUTO                      # HTTP/1.1", "          http_protocol_options: {accept_http_10: true}\n          codec_type: AUTO                      # HTTP/1.1",
}

// facts are the rows of the table of docs/modes.md. The last two need a seat for each replica that is taken, and the last
// ends weir.
var facts = []struct {
	name    string
	measure func(t *testing.T, r *rig) string
}{
	{"the pick is followed", picksFollowed},
	{"of a prompt of 64 kB weir reads", reads(smallPrompt)},
	{"of one of 400 kB", reads(largePrompt)},
	{"its tokens count as", charged},
	{"Content-Length of an HTTP/1.1 client", framing("HTTP/1.1")},
	{"of an HTTP/1.0 client", framing("HTTP/1.0")},
	{"of an HTTP/2 client", framing("HTTP/2")},
	{"a replica that refuses chunks answers", refusesChunks},
	{"a retry of 64 kB", retried(smallPrompt)},
	{"a retry of 400 kB", retried(largePrompt)},
	{"a websocket upgrade", upgrades},
	{"a hold past message_timeout", holds},
	{"weir dies while it holds a request", diesHolding},
}

// TestModes measures what each request body mode does, with both versions of Envoy, and wants it as docs/modes.md has it.
// With -update it writes the table there, and another of what the modes cost.
func TestModes(t *testing.T) {
	cells := map[envoy.Mode]map[string]string{}
	var mu sync.Mutex
	eachVersion(t, func(t *testing.T, path string) {
		for _, mode := range allModes {
			r := startRig(t, path, rigOptions{mode: mode, edits: slices.Concat(bufferOf(envoyBuffer), oldClients, upgradable, shortTimeouts)})
			t.Run(string(mode), func(t *testing.T) {
				t.Parallel()
				got := map[string]string{}
				for i, f := range facts {
					switch i {
					case 0:
						r.serve(t, 0)
					case len(facts) - 2:
						r.edge.stop()
						r.serve(t, 1)
					}
					got[f.name] = f.measure(t, r)
					if i < len(facts)-1 {
						r.settle(t)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if before, ok := cells[mode]; ok && fmt.Sprint(before) != fmt.Sprint(got) {
					t.Errorf("%s does\n%v\nand the version before it\n%v", path, got, before)
				}
				cells[mode] = got
			})
		}
	})
	var table strings.Builder
	table.WriteString("| |")
	for _, mode := range allModes {
		fmt.Fprintf(&table, " %s |", mode.Name())
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(allModes)) + "\n")
	for _, f := range facts {
		fmt.Fprintf(&table, "| %s |", f.name)
		for _, mode := range allModes {
			fmt.Fprintf(&table, " %s |", cells[mode][f.name])
		}
		table.WriteString("\n")
	}
	inDoc(t, "facts", table.String())
	if *update {
		inDoc(t, "costs", modeCosts(t))
	}
}

// inDoc wants a made part of docs/modes.md to be the text, or makes it so.
func inDoc(t *testing.T, part, text string) {
	t.Helper()
	doc, err := os.ReadFile(modesDoc)
	if err != nil {
		t.Fatal(err)
	}
	start, end := "<!-- "+part+" -->\n", "<!-- end of "+part+" -->\n"
	before, rest, found := strings.Cut(string(doc), start)
	is, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Fatalf("%s has no part %s", modesDoc, part)
	case *update:
		if err := os.WriteFile(modesDoc, []byte(before+start+text+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case is != text:
		t.Errorf("%s has\n%s\nand it is\n%s", modesDoc, is, text)
	}
}
