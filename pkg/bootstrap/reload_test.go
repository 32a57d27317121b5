package bootstrap

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
)

// texts are the files of a test: envoy.yaml and weir.yaml in a directory of their own. Empty: not given.
type texts struct{ envoy, weir string }

// write returns the files, and a function that takes their directory out of a text.
func (x texts) write(t *testing.T) (f Files, short func(string) string) {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string) string {
		if text == "" {
			return ""
		}
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	f = Files{put("envoy.yaml", x.envoy), put("weir.yaml", x.weir)}
	return f, func(text string) string { return strings.ReplaceAll(text, dir+"/", "") }
}

// bare is a bootstrap file without a policy.
const bare = `static_resources:
  listeners: [{"@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor, grpc_service: {envoy_grpc: {cluster_name: weir}}}]
  clusters:
  - name: weir
    load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: weir.sock}}}}]}]}
  - name: replicas
    load_balancing_policy: {policies: [{typed_extension_config: {name: envoy.load_balancing_policies.override_host}}]}
    load_assignment: {endpoints: [{lb_endpoints: [
      {endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 8000}}}},
      {endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 8000}}}}]}]}
`

const (
	second  = "  - name: weir\n"
	another = `  - {name: more, load_balancing_policy: {policies: [{typed_extension_config: {name: envoy.load_balancing_policies.override_host}}]}, load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.3, port_value: 8000}}}}]}]}}` + "\n"
	alone   = "listen: unix:weir.sock\npools:\n- {name: replicas, endpoints: [10.0.0.1:8000, 10.0.0.2:8000]}\n"
	node    = "node: {metadata: {weir: {max_hold: 1m}}}\n"
)

// filter is a second listener, whose ext_proc filter calls another cluster.
func filter() string {
	return strings.Replace(bare, `{cluster_name: weir}}}]`, `{cluster_name: weir}}}, {"@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor, grpc_service: {envoy_grpc: {cluster_name: other}}}]`, 1)
}

func TestPolicyInItsOwnFile(t *testing.T) {
	for _, c := range []struct {
		name string
		texts
		want []string // faults; none: MaxHold is a minute
	}{
		{"beside", texts{bare, "max_hold: 1m\n"}, nil},
		{"alone", texts{"", alone + "max_hold: 1m\n"}, nil},
		{"beside, and it chooses the cluster", texts{filter(), "max_hold: 1m\next_proc_cluster: weir\n"}, nil},
		{"in both", texts{node + bare, "# the policy\nmax_hold: 1m\n"}, []string{
			"envoy.yaml:1: node.metadata.weir: the policy stands in weir.yaml:2 too: give it in one of the two",
		}},
		{"in both, an empty one too", texts{"node: {metadata: {weir: {}}}\n" + bare, "max_hold: 1m\n"}, []string{
			"envoy.yaml:1: node.metadata.weir: the policy stands in weir.yaml:1 too: give it in one of the two",
		}},
		{"two clusters", texts{filter(), "max_hold: 1m\n"}, []string{
			"envoy.yaml:2: ext_proc filters call several clusters: give ext_proc_cluster in weir.yaml, one of other, weir",
		}},
		{"a cluster that nobody calls", texts{filter(), "max_hold: 1m\next_proc_cluster: picker\n"}, []string{
			`weir.yaml:2: ext_proc_cluster: no ext_proc filter calls "picker": they call other, weir`,
		}},
		{"faults in both files", texts{strings.Replace(bare, "10.0.0.2", "10.0.0.1", 1), "listen: unix:x\nknne: 1\nmax_hold: 0s\n"}, []string{
			"weir.yaml:1: listen: weir listens where Envoy calls it, at the endpoint of the bootstrap file's ext_proc cluster: leave it out",
			`weir.yaml:2: unknown key "knne": the keys are admin, affinity, balance_on, body_limit, body_memory, class_from, classes, ext_proc_cluster, flow, listen, max_hold, pools, queue, replica, rule, tools_position`,
			"weir.yaml:3: max_hold: 0s is not between 0 and 1h",
			"envoy.yaml:10: 10.0.0.1:8000 stands twice, first on line 9",
		}},
		{"no YAML", texts{bare + "x: ]\n", "max_hold: [\n"}, []string{
			"weir.yaml:2: did not find expected node content",
			"envoy.yaml:11: did not find expected node content",
		}},
		{"nothing but a comment", texts{bare, "# max_hold: 1m\n"}, []string{"weir.yaml: yaml: no documents in stream"}},
	} {
		f, short := c.write(t)
		b, err := Load(f)
		switch {
		case len(c.want) == 0 && (err != nil || b.Policy.Route.MaxHold != time.Minute || b.Listen != (Address{"unix", "weir.sock"}) ||
			len(b.Pools) != 1 || b.Pools[0].Name != "replicas" || len(b.Pools[0].Endpoints) != 2):
			t.Errorf("%s: got %+v, %v", c.name, b, err)
		case len(c.want) > 0 && (err == nil || short(err.Error()) != strings.Join(c.want, "\n")):
			t.Errorf("%s: got\n%v\nwant\n%s", c.name, err, strings.Join(c.want, "\n"))
		}
	}
}

// TestAMissingFileOfTwo names the one that is away.
func TestAMissingFileOfTwo(t *testing.T) {
	f, _ := texts{bare, "max_hold: 1m\n"}.write(t)
	f.Policy += ".away"
	if _, err := Load(f); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), f.Policy) {
		t.Errorf("got %v", err)
	}
}

func TestReload(t *testing.T) {
	const envoyOnly, weirOnly = ": Envoy reads its bootstrap only when it starts: restart Envoy and weir", ": it is read when weir starts: restart weir"
	beside := texts{bare, "max_hold: 5m\n"}
	for _, c := range []struct {
		name     string
		old, new texts
		changed  string // keys; with fault empty too: nothing
		fault    []string
	}{
		{"nothing", texts{bare, ""}, texts{bare, ""}, "", nil},
		{"a default, written out, and one key", beside, texts{bare, "max_hold: 300s\nflow: header:x-tenant\n"}, "flow", nil},
		{"Envoy's own part", texts{bare, ""}, texts{"admin: {}\n" + bare, ""}, "", nil},
		{"the policy", texts{bare, ""}, texts{node + bare, ""}, "max_hold", nil},
		{"the policy beside", beside, texts{bare, "max_hold: 1m\nqueue: fifo\nclasses: [{name: a, deadline: 1s}]\n"}, "classes max_hold queue", nil},
		{"the policy alone", texts{"", alone}, texts{"", "rule: none\n" + alone}, "rule", nil},
		{"the order of endpoints and pools", texts{bare + another, ""}, texts{strings.Replace(strings.NewReplacer("10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.1").Replace(bare), second, another+second, 1), ""}, "", nil},
		{"an endpoint", texts{bare, ""}, texts{strings.Replace(bare, "10.0.0.2", "10.0.0.9", 1), ""}, "", []string{`envoy.yaml:6: the endpoints of pool "replicas" changed` + envoyOnly}},
		{"an endpoint gone, alone", texts{"", alone}, texts{"", strings.Replace(alone, ", 10.0.0.2:8000", "", 1)}, "", []string{`weir.yaml:3: the endpoints of pool "replicas" changed` + weirOnly}},
		{"a pool's name", texts{bare, ""}, texts{strings.Replace(bare, "name: replicas", "name: models", 1), ""}, "", []string{
			`envoy.yaml:6: pool "models" is new` + envoyOnly, `envoy.yaml:4: pool "replicas" is gone` + envoyOnly,
		}},
		{"one more pool, alone", texts{"", alone}, texts{"", alone + "- {name: more, endpoints: [10.0.0.1:8000]}\n"}, "", []string{`weir.yaml:4: pool "more" is new` + weirOnly}},
		{"one pool less", texts{bare + another, ""}, texts{bare, ""}, "", []string{`envoy.yaml:4: pool "more" is gone` + envoyOnly}},
		{"the address", texts{bare, ""}, texts{strings.Replace(bare, "weir.sock", "other.sock", 1), ""}, "", []string{"envoy.yaml:5: weir listens on weir.sock, not on other.sock" + envoyOnly}},
		{"the address, alone", texts{"", alone}, texts{"", strings.Replace(alone, "unix:weir.sock", "127.0.0.1:9000", 1)}, "", []string{"weir.yaml:1: weir listens on weir.sock, not on 127.0.0.1:9000" + weirOnly}},
		{"each key that is fixed, and one that is live", texts{bare, "max_hold: 5m\nadmin: 127.0.0.1:1\n"}, texts{bare, "max_hold: 1m\nbody_limit: 1\nbody_memory: 2\nreplica: {seats: 1}\n"}, "", []string{
			"weir.yaml:1: admin: it changed, and the listener opens at weir's start: restart weir",
			"weir.yaml:2: body_limit: it changed, and the gRPC server's receive limit is fixed at weir's start: restart weir",
			"weir.yaml:3: body_memory: it changed, and it stays what it was at weir's start, as body_limit does: restart weir",
			"weir.yaml:4: replica: it changed, and the step model sizes the prefix indexes at weir's start: restart weir",
		}},
		{"a fixed key and no policy any more", texts{"node: {metadata: {weir: {body_limit: 1}}}\n" + bare, ""}, texts{bare, ""}, "", []string{
			"envoy.yaml: body_limit: it changed, and the gRPC server's receive limit is fixed at weir's start: restart weir",
		}},
		{"faults", texts{bare, ""}, texts{"node: {metadata: {weir: {max_hold: 0s, body_limit: 1}}}\n" + bare, ""}, "", []string{"envoy.yaml:1: max_hold: 0s is not between 0 and 1h"}},
		{"half a file", texts{bare, ""}, texts{strings.SplitAfter(bare, "weir.sock")[0], ""}, "", []string{"envoy.yaml:6: did not find expected ',' or '}'"}},
	} {
		f, _ := c.old.write(t)
		old, err := Load(f)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		f, short := c.new.write(t)
		b, changed, err := Reload(old, f)
		if err != nil || len(c.fault) > 0 {
			if err == nil || b != nil || changed != nil || short(err.Error()) != strings.Join(c.fault, "\n") {
				t.Errorf("%s: got %v\n%v\nwant\n%s", c.name, changed, err, strings.Join(c.fault, "\n"))
			}
			continue
		}
		if got := strings.Join(changed, " "); got != c.changed {
			t.Errorf("%s: changed %q, want %q", c.name, got, c.changed)
		}
		if again, changed, err := Reload(b, f); err != nil || len(changed) > 0 || again == nil {
			t.Errorf("%s: again: %v, %v", c.name, changed, err)
		}
	}
}

// TestCheckJudgesByThePolicyFile has one finding of a rule that needs the policy, in the bootstrap file, and one of
// the policy file after it.
func TestCheckJudgesByThePolicyFile(t *testing.T) {
	shipped := edited(t, envoy.Buffered)
	begin, end := strings.Index(shipped, "    weir:"), strings.Index(shipped, "static_resources:")
	shipped = shipped[:begin] + "    other: {}\n" + shipped[end:]
	for _, c := range []struct {
		texts
		want []string
	}{
		{texts{shipped, "max_hold: 3599s\n"}, []string{"envoy.yaml: idle-timeout", "envoy.yaml: hold-timeout"}},
		{texts{shipped, "max_hold: 1m\n"}, nil},
		{texts{shipped, "max_hold: 1m\nflow: header:cookie\n"}, []string{"weir.yaml: flow-secret"}},
		{texts{"", alone + "flow: header:proxy-authorization\n"}, []string{"weir.yaml: flow-secret"}},
		{texts{"", alone + "affinity: consistent_hash(header:prompt_cache_key)\n"}, []string{"weir.yaml: affinity-body-key"}},
		{texts{shipped, "max_hold: 0s\npools: []\n"}, []string{"weir.yaml: serve", "weir.yaml: serve"}},
		{texts{strings.Replace(shipped, "response_trailer_mode: SEND", "response_trailer_mode: SKIP", 1), "knne: 1\n"}, []string{"envoy.yaml: trailer-mode", "weir.yaml: serve"}},
		{texts{"", alone}, nil},
		{texts{"", alone + "max_hold: 0s\n"}, []string{"weir.yaml: serve"}},
		{texts{"", "max_hold: ]\n"}, []string{"weir.yaml: serve"}},
	} {
		f, short := c.write(t)
		all, err := Check(f, Oldest)
		var got []string
		for _, one := range all {
			got = append(got, short(one.File)+": "+one.Rule)
			if one.Line == 0 {
				t.Errorf("no line: %v", one)
			}
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("got %v, %v\nwant %v", all, err, c.want)
		}
	}
}
