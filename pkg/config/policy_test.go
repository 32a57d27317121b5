package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/pkg/classify"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/prompt"
)

func parse(t testing.TB, text string) *yaml.Node {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Load([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Content[0]
}

// TestBadFiles reads one file per fault, and per combination that matters. What each must report stands in the
// file itself, as "# want LINE: TEXT", every fault in order: nothing is reported twice and nothing is left out.
// gateway-api-inference-extension#426 and its kind: unset, zero, negative and NaN values, unknown keys, addresses, no class at all.
func TestBadFiles(t *testing.T) {
	badFiles(t, "testdata", 20, Read)
	badFiles(t, "testdata/alone", 20, func(n *yaml.Node, file string) (Policy, error) {
		a, err := ReadAlone(n, file)
		return a.Policy, err
	})
	badFiles(t, "testdata/beside", 2, ReadBeside)
}

func badFiles(t *testing.T, dir string, least int, read func(*yaml.Node, string) (Policy, error)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.bad.yaml"))
	if err != nil || len(names) < least {
		t.Fatalf("%s: %d files, %v", dir, len(names), err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for line := range strings.Lines(string(text)) {
			if w, ok := strings.CutPrefix(line, "# want "); ok {
				want = append(want, "envoy.yaml:"+strings.TrimSpace(w))
			}
		}
		_, err = read(parse(t, string(text)), "envoy.yaml")
		if err == nil || len(want) == 0 {
			t.Errorf("%s: error %v, wants %d", name, err, len(want))
		} else if w := strings.Join(want, "\n"); err.Error() != w {
			t.Errorf("%s: got\n%v\nwant\n%s", name, err, w)
		}
	}
}

// TestEveryFaultIsItsOwnError lets a caller count and print them one by one.
func TestEveryFaultIsItsOwnError(t *testing.T) {
	_, err := Read(parse(t, "body_limit: 0\nknne: 1\nadmin: x\n"), "f")
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || len(joined.Unwrap()) != 3 {
		t.Errorf("got %v", err)
	}
}

func TestWithoutKeysEveryDefault(t *testing.T) {
	for _, n := range []*yaml.Node{nil, parse(t, "{}")} {
		if p, err := Read(n, "f"); err != nil || !reflect.DeepEqual(p, Default()) {
			t.Errorf("got %+v, %v", p, err)
		}
	}
	p := Default()
	if err := errors.Join(p.Route.Validate(), p.Edge.Validate(), p.Replica.Validate(), p.validateAdmin()); err != nil {
		t.Error(err)
	}
}

// class is a class of seven seconds of which the rest is not given: what it lacks is not what another has.
func class(name string, bulk bool) classify.Class {
	return classify.Class{Name: name, Deadline: 7 * time.Second, Bulk: bulk, MaxHeld: 10_000, MaxHeldBytes: 512 << 20}
}

func TestWhatIsGivenReplacesTheDefault(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       func(*Policy)
	}{
		{"every key", `
classes:
- {name: now, deadline: 5s, max_deadline: 6s, share_percent: 7, max_held: 0, max_held_bytes: 0}
- {name: later, deadline: 1h, bulk: true}
max_hold: 90s
tools_position: {meta-llama/Llama-3.1-8B: after_system, "7": first}
body_limit: 1024
flow: header:X-Tenant
class_from: metadata:envoy.filters.http.jwt_authn:claims.class
admin: "[::1]:9000"
ext_proc_cluster: weir
replica: {profile: 70B, step: 20ms, per_sequence: 0s, per_context_token: 0.05us, per_prompt_token: 70us, chunk: 2048, kv_tokens: 1000, seats: 64, output_tokens: 16, max_backlog: 250ms, max_kv_percent: 90, learn: false}
`, func(p *Policy) {
			p.Route.Classes = []classify.Class{
				{Name: "now", Deadline: 5 * time.Second, MaxDeadline: 6 * time.Second, SharePercent: 7},
				{Name: "later", Deadline: time.Hour, Bulk: true, MaxHeld: 10_000, MaxHeldBytes: 512 << 20},
			}
			p.Route.MaxHold = 90 * time.Second
			p.Route.ToolsPosition = map[string]prompt.ToolsPosition{"meta-llama/Llama-3.1-8B": prompt.ToolsAfterSystem, "7": prompt.ToolsFirst}
			p.Edge.BodyLimit, p.Edge.Flow, p.Edge.ClassFrom = 1024, "header:X-Tenant", "metadata:envoy.filters.http.jwt_authn:claims.class"
			p.Admin, p.ExtProcCluster = "[::1]:9000", "weir"
			p.Replica = pool.Config{
				Profile: "70B", Step: 20 * time.Millisecond, PerContextToken: 50, PerPromptToken: 70 * time.Microsecond,
				Chunk: 2048, KVTokens: 1000, Seats: 64, OutputTokens: 16, MaxKVPercent: 90, MaxBacklog: 250 * time.Millisecond,
			}
		}},
		{"the profile's constants are the defaults, wherever it stands", "replica: {seats: 9, profile: 32B}", func(p *Policy) {
			p.Replica, _ = pool.Default("32B")
			p.Replica.Seats = 9
		}},
		{"constants without a profile", "replica: {seats: 9}", func(p *Policy) { p.Replica.Seats = 9 }},
		{"JSON", `{"max_hold": "1m", "replica": {"profile": "70B"}}`, func(p *Policy) {
			p.Route.MaxHold = time.Minute
			p.Replica, _ = pool.Default("70B")
		}},
		{"a whole number written as a double, as Envoy keeps it", "replica: {seats: 5.0}\nbody_limit: 1e6", func(p *Policy) {
			p.Replica.Seats, p.Edge.BodyLimit = 5, 1_000_000
		}},
		{"anchors", "classes:\n- {name: a, deadline: &d 7s}\n- {name: b, deadline: *d}", func(p *Policy) {
			p.Route.Classes = []classify.Class{class("a", false), class("b", false)}
		}},
		{"merge keys: the own key wins, then the first mapping", `
classes:
- &a {name: a, deadline: 7s}
- &b {<<: *a, name: b, bulk: true}
- {name: c, <<: [*b, {deadline: 9s}]}
replica: {<<: {profile: 32B, seats: 1}, seats: 2}
`, func(p *Policy) {
			p.Route.Classes = []classify.Class{class("a", false), class("b", true), class("c", true)}
			p.Replica, _ = pool.Default("32B")
			p.Replica.Seats = 2
		}},
	} {
		want := Default()
		c.want(&want)
		if got, err := Read(parse(t, c.text), "f"); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%+v, %v\nwant\n%+v", c.name, got, err, want)
		}
	}
}

// TestAnAnchorInsideItselfEnds holds for a merge key and for a plain alias.
func TestAnAnchorInsideItselfEnds(t *testing.T) {
	for _, text := range []string{"replica: &r {<<: *r, seats: 5}", "classes: &c [*c]", "&all {<<: [*all, *all], body_limit: 5}"} {
		p, err := Read(parse(t, text), "f")
		if err == nil && p.Replica.Seats != 5 && p.Edge.BodyLimit != 5 {
			t.Errorf("%s: got %+v", text, p)
		}
	}
}

// TestEveryFieldHasAKey guards the walk over the stages' structs: a field without a key, or of a kind that
// scalar does not know, could not be set.
func TestEveryFieldHasAKey(t *testing.T) {
	var check func(path string, v reflect.Value)
	check = func(path string, v reflect.Value) {
		for key, f := range fields(map[string]reflect.Value{}, v) {
			at := path + key
			switch {
			case key == "" || !f.CanSet():
				t.Errorf("%s%s: a field without a key", path, f.Type())
			case f.Kind() == reflect.Struct:
				check(at+".", f)
			case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
				check(at+"[].", reflect.New(f.Type().Elem()).Elem())
			default:
				if f.Kind() == reflect.Slice || f.Kind() == reflect.Map {
					f = reflect.New(f.Type().Elem()).Elem()
				}
				if err := scalar(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, f); err != nil && strings.Contains(err.Error(), "cannot read") {
					t.Errorf("%s: %v", at, err)
				}
			}
		}
	}
	check("", reflect.ValueOf(&Alone{}).Elem())
}

// FuzzRead holds that any tree is a policy that validates or an error that names the file, never a panic.
func FuzzRead(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.yaml")
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("replica: &r {<<: *r, seats: 5}")
	f.Fuzz(func(t *testing.T, text string) {
		var doc yaml.Node
		if yaml.Load([]byte(text), &doc) != nil || len(doc.Content) == 0 {
			return
		}
		p, err := Read(doc.Content[0], "f")
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				var n int
				if _, err := fmt.Sscanf(line, "f:%d: ", &n); err != nil || n < 1 {
					t.Fatalf("%q: error without a line: %q", text, line)
				}
			}
			return
		}
		if err := errors.Join(p.Route.Validate(), p.Edge.Validate(), p.Replica.Validate(), p.validateAdmin()); err != nil {
			t.Fatalf("%q: read as %+v: %v", text, p, err)
		}
	})
}
