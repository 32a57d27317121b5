package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/pkg/config"
	"github.com/weirproxy/weir/pkg/extproc"
)

const shipped = "../../envoy/bootstrap.yaml"

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// parseText is Load of a bootstrap file f with that text.
func parseText(text string) (*Bootstrap, error) {
	r, err := input{Files: Files{Bootstrap: "f"}, envoy: []byte(text)}.parse()
	if err != nil {
		return nil, err
	}
	return &r.Bootstrap, nil
}

func checkText(text string, envoy Version) []Finding {
	return input{Files: Files{Bootstrap: "f"}, envoy: []byte(text)}.check(envoy)
}

func TestShippedFile(t *testing.T) {
	got, err := Load(Files{Bootstrap: shipped})
	if err != nil {
		t.Fatal(err)
	}
	want := &Bootstrap{
		Policy: config.Default(), Listen: Address{"unix", "weir.sock"},
		Pools:  []Pool{{"replicas", []string{"127.0.0.1:8001", "127.0.0.1:8002", "127.0.0.1:8003", "127.0.0.1:8004"}}},
		Timers: []extproc.Timer{{Message: time.Second, Most: 10 * time.Minute}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// TestEveryFormReadsAlike reads the shipped file as JSON, with spaces and with tabs, and with camelCase in
// Envoy's part.
func TestEveryFormReadsAlike(t *testing.T) {
	want, err := Load(Files{Bootstrap: shipped})
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := yaml.Load([]byte(read(t, shipped)), &tree); err != nil {
		t.Fatal(err)
	}
	for form, text := range map[string]string{
		"JSON": marshal(t, tree, "  "), "JSON with tabs": marshal(t, tree, "\t"), "JSON on one line": marshal(t, tree, ""),
		"camelCase": marshal(t, camelKeys(tree), " "),
	} {
		if strings.Contains(text, "static_resources") == (form == "camelCase") {
			t.Fatalf("%s: the test's own text is wrong", form)
		}
		if got, err := parseText(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", form, got, err)
		}
	}
}

func marshal(t *testing.T, v any, indent string) string {
	t.Helper()
	text, err := json.Marshal(v)
	if indent != "" {
		text, err = json.MarshalIndent(v, "", indent)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// camelKeys renames every key but those of the node's metadata, which are no fields of Envoy's.
func camelKeys(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if key != "metadata" && !strings.ContainsAny(key, "@.") {
				value, key = camelKeys(value), camel(key)
			} else if key != "metadata" {
				value = camelKeys(value)
			}
			out[key] = value
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = camelKeys(v[i])
		}
		return out
	}
	return v
}

// TestGoodFiles reads the files in testdata that a mesh may have in other forms than the shipped one.
func TestGoodFiles(t *testing.T) {
	long := config.Default()
	long.Route.MaxHold = 2 * time.Minute
	chosen := config.Default()
	chosen.ExtProcCluster = "picker"
	replicas := []Pool{{"replicas", []string{"10.0.0.1:8000", "[2001:db8::1]:8000"}}}
	byDefault := []extproc.Timer{{Message: 200 * time.Millisecond}}
	of := func(p config.Policy, network, address string, pools []Pool, timers []extproc.Timer) *Bootstrap {
		return &Bootstrap{Policy: p, Listen: Address{network, address}, Pools: pools, Timers: timers}
	}
	for name, want := range map[string]*Bootstrap{
		"minimal.yaml":   of(config.Default(), "tcp", "127.0.0.1:9000", replicas, byDefault),
		"anchors.yaml":   of(long, "unix", "/run/weir.sock", append(replicas, Pool{"more", []string{"10.0.0.1:8000", "[2001:db8::1]:8000"}}), byDefault),
		"unknown.yaml":   of(config.Default(), "unix", "@weir", replicas, byDefault),
		"per_route.yaml": of(config.Default(), "tcp", "[::1]:9000", replicas, nil),
		"chosen.yaml":    of(chosen, "tcp", "127.0.0.1:9001", replicas, []extproc.Timer{{Message: 3 * time.Second, Most: time.Minute}, {Message: 700 * time.Millisecond}}),
	} {
		got, err := Load(Files{Bootstrap: filepath.Join("testdata", name)})
		if got != nil {
			got.Errors = nil // TestErrorsOfAFile
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%+v, %v\nwant\n%+v", name, got, err, want)
		}
	}
}

// TestBadFiles reads one file per fault. What each must report stands in it, as "# want LINE: TEXT".
func TestBadFiles(t *testing.T) {
	names, err := filepath.Glob("testdata/*.bad.yaml")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		var want []string
		for line := range strings.Lines(read(t, name)) {
			if w, ok := strings.CutPrefix(line, "# want "); ok {
				want = append(want, name+":"+strings.TrimSpace(w))
			}
		}
		_, err := Load(Files{Bootstrap: name})
		if err == nil || len(want) == 0 {
			t.Errorf("%s: error %v, wants %d", name, err, len(want))
		} else if w := strings.Join(want, "\n"); err.Error() != w {
			t.Errorf("%s: got\n%v\nwant\n%s", name, err, w)
		}
	}
}

// TestTextsWithoutALine are the faults that stand on no line. Envoy reads the first of two documents; weir
// would not know which one was meant.
func TestTextsWithoutALine(t *testing.T) {
	for text, want := range map[string]string{
		"node: {id: a}\n---\nnode: {id: b}\n": "f: yaml: expected single document, found multiple",
		"":                                    "f: yaml: no documents in stream",
	} {
		if _, err := parseText(text); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestAMissingFileIsAnError(t *testing.T) {
	if _, err := Load(Files{Bootstrap: filepath.Join(t.TempDir(), "envoy.yaml")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestAliasesWithinAliasesAreCheap walks 2^40 paths to one filter in a file of 40 lines.
func TestAliasesWithinAliasesAreCheap(t *testing.T) {
	var b strings.Builder
	b.WriteString("static_resources: {listeners: [&a0 {\"@type\": x/" + extProc + ", grpc_service: {envoy_grpc: {cluster_name: weir}}}")
	for i := range 40 {
		fmt.Fprintf(&b, ",\n &a%d [*a%d, *a%d]", i+1, i, i)
	}
	b.WriteString(",\n &self {inside: *self}]}\n")
	_, err := parseText(b.String())
	want := `f:1: cluster "weir" is weir and is not in static_resources.clusters` +
		"\nf:1: no cluster has the load balancing policy override_host: weir has nothing to route over"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// FuzzParse holds that any text is a complete bootstrap or an error, never a panic.
func FuzzParse(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.yaml")
	for _, name := range append(names, shipped) {
		f.Add(read(f, name))
	}
	f.Add("")
	f.Add("# nothing")
	f.Add("--- a\n--- b")
	f.Fuzz(func(t *testing.T, text string) {
		b, err := parseText(text)
		if (b == nil) != (err != nil) {
			t.Fatalf("%q: %+v, %v", text, b, err)
		}
		if err != nil {
			return
		}
		if b.Listen.Network == "" || b.Listen.Address == "" || len(b.Pools) == 0 {
			t.Fatalf("%q: incomplete: %+v", text, b)
		}
		for _, p := range b.Pools {
			if p.Name == "" || len(p.Endpoints) == 0 {
				t.Fatalf("%q: incomplete: %+v", text, b)
			}
		}
	})
}
