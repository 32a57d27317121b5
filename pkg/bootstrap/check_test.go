package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/envoy"
)

// off is a route to a cluster without override_host, with weir's filter switched off in the given way.
func off(how string) string {
	return "              - match: {path: /health}\n                route: {cluster: replicas_round_robin}\n                typed_per_filter_config: {envoy.filters.http.ext_proc: {" + how + "}}\n"
}

// tunnelRoute is a route for nothing but upgrades, without their bodies.
func tunnelRoute(match string) string {
	return "              - match: {" + match + "}\n" + perRoute + "                    overrides: {processing_mode: {request_body_mode: NONE, response_trailer_mode: SEND}}\n                route: {cluster: replicas, timeout: 0s, retry_policy: {}, upgrade_configs: [{upgrade_type: websocket}, {upgrade_type: CONNECT}]}\n"
}

// TestNothingAgainstGoodFiles holds that what differs from the shipped file and is right has no finding.
func TestNothingAgainstGoodFiles(t *testing.T) {
	newerFields := []string{
		filterEnd, "              allow_content_length_header: true\n" + filterEnd,
		fallbackBody, "            selected_host_key: {key: weir.served, path: [{key: endpoint}]}\n" + fallbackBody,
	}
	for name, c := range map[string]struct {
		mode  envoy.Mode
		envoy Version
		edits []string
	}{
		"the shipped file, buffered":  {},
		"the shipped file, streamed":  {mode: envoy.Streamed},
		"newer fields, a newer Envoy": {envoy: Newest, edits: newerFields},
		"the strip ahead of the filters": {edits: []string{strip, "", "stream_idle_timeout: 900s             #", `early_header_mutation_extensions:
          - typed_config:
              "@type": type.googleapis.com/envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation
              mutations: [{remove: X-Gateway-Destination-Endpoint}]
          stream_idle_timeout: 900s #`}},
		"no header source, no strip":               {edits: []string{strip, "", sources, strings.SplitAfter(sources, "\n")[0]}},
		"a second route for bulk":                  {edits: overridden("overrides: {failure_mode_allow: false, grpc_initial_metadata: [{key: weir-class, value: bulk}, {key: weir-deadline, value: 90s}]}")},
		"weir off for routes elsewhere":            {edits: []string{theRoute, off("disabled: true") + off(`config: {"@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute, disabled: true}`) + theRoute}},
		"the pool by metadata":                     {edits: append(overridden("overrides: {grpc_initial_metadata: [{key: weir-pool, value: replicas}, {key: other, value: '%REQ(x)%'}]}"), "value: bulk}]}", "value: bulk}, {key: weir-pool, value: replicas}]}", "request_attributes: [xds.cluster_name] ", "request_attributes: [xds.route_name] ")},
		"no idle timeout, a long route timeout":    {edits: []string{"stream_idle_timeout: 900s             #", "stream_idle_timeout: 0s #", noTimeout, "timeout: 600s #"}},
		"the route's idle timeout counts":          {edits: []string{"stream_idle_timeout: 900s             #", "stream_idle_timeout: 9s #", noTimeout, "idle_timeout: 900s\n                  " + noTimeout}},
		"streamed needs no override":               {mode: envoy.Streamed, edits: []string{"max_message_timeout: 600s", "#"}},
		"http2_protocol_options in the old place":  {edits: []string{"        explicit_http_config:\n          http2_protocol_options:\n            connection_keepalive: {interval: 2s, timeout: 3s}", "        other: #", "    connect_timeout: 2s ", "    http2_protocol_options: {}\n    connect_timeout: 2s "}},
		"the route's mode counts":                  {edits: append(overridden("overrides: {processing_mode: {request_body_mode: BUFFERED, response_trailer_mode: SEND}}"), "overrides: {failure", "overrides: {processing_mode: {request_body_mode: BUFFERED, response_trailer_mode: SEND}, failure", "response_trailer_mode: SEND    ", "response_trailer_mode: SKIP    ")},
		"the route's limit counts, newest":         {envoy: Newest, edits: []string{"    per_connection_buffer_limit_bytes: 33554432   #", "    #"}},
		"no class is bulk, no route for it":        {edits: []string{"deadline: 300s, bulk: true, ", "deadline: 300s, ", bulkOverride, "overrides: {failure_mode_allow: true}"}},
		"all but bulk fails open, the rest closed": {edits: append([]string{bulkRoute, strings.NewReplacer("bulk}}", "bulk}, invert_match: true}", "failure_mode_allow: false, grpc_initial_metadata: [{key: weir-class, value: bulk}]", "failure_mode_allow: true").Replace(bulkRoute)}, overridden("overrides: {failure_mode_allow: false}")...)},
		"bulk at a path of its own, all before":    {edits: []string{bulkRoute, prefixRoute("/health") + prefixRoute("/batch") + strings.Replace(bulkRoute, "prefix: /,", "prefix: /bulk,", 1)}},
		"a match that says more is no catch-all":   {edits: []string{bulkRoute, "              - match: {prefix: /, query_parameters: [{name: debug}]}\n                route: {cluster: replicas, timeout: 0s, retry_policy: {}}\n" + bulkRoute}},
		"bulk in any case":                         {edits: []string{"{exact: bulk}", "{exact: BULK, ignore_case: true}"}},
		"bulk by an expression":                    {edits: []string{"{exact: bulk}", "{safe_regex: {regex: 'bulk|batch'}}"}},
		"headers that weir reads are forwarded":    {edits: []string{filterEnd, "              forward_rules: {allowed_headers: {patterns: [{prefix: ':'}, {contains: WEIR, ignore_case: true}]}, disallowed_headers: {patterns: [{exact: authorization}]}}\n" + filterEnd}},
		"what weir sets may be set":                {edits: []string{filterEnd, "              mutation_rules: {disallow_all: true, allow_expression: {regex: 'x-gateway-.*|retry-after(-ms)?|content-type'}}\n" + filterEnd}},
		"a status for errors":                      {edits: []string{"status_on_error: {code: ServiceUnavailable}", "status_on_error: {code: 504}"}},
		"a flow that is no secret":                 {edits: []string{"max_hold: 300s", "flow: header:x-tenant\n      max_hold: 300s"}},
		"an affinity that clients send":            {edits: []string{"affinity: consistent_hash(prompt_prefix)  ", "affinity: consistent_hash(header:x-session-id)  "}},
		"an affinity of the body":                  {edits: []string{"affinity: consistent_hash(prompt_prefix)  ", "affinity: consistent_hash(prompt_cache_key)  "}},
		"upgrades, streamed":                       {mode: envoy.Streamed, edits: []string{codec, "upgrade_configs: [{upgrade_type: websocket}]\n          " + codec}},
		"an upgrade that goes past weir":           {edits: []string{codec, "upgrade_configs: [{upgrade_type: websocket, filters: [{name: envoy.filters.http.router}]}]\n          " + codec}},
		"upgrades off":                             {edits: []string{codec, "proxy_100_continue: false\n          upgrade_configs: [{upgrade_type: websocket, enabled: false}, {upgrade_type: CONNECT}]\n          " + codec, noTimeout, "upgrade_configs: [{upgrade_type: connect, enabled: false}]\n                  " + noTimeout}},
		"tunnels on routes of their own":           {edits: []string{bulkRoute, tunnelRoute("connect_matcher: {}") + tunnelRoute("prefix: /, headers: [{name: Upgrade, present_match: true}]") + bulkRoute}},
		"tunnels of a kind on a route before": {edits: []string{codec, "upgrade_configs: [{upgrade_type: websocket}, {upgrade_type: CONNECT}]\n          " + codec,
			bulkRoute, tunnelRoute("connect_matcher: {}") + tunnelRoute("prefix: /, headers: [{name: Upgrade, string_match: {exact: WebSocket, ignore_case: true}}]") + bulkRoute}},
		"nobody is held, streamed":                 {mode: envoy.Streamed, edits: []string{"max_hold: 300s", "body_memory: 67108864\n      max_hold: 300s", "queue: priority_classes + deadlines  ", "queue: none #"}},
		"room for what is held":                    {mode: envoy.Streamed, edits: []string{"max_hold: 300s", "body_memory: 1140850688\n      max_hold: 300s"}},
		"less of it, where Envoy keeps the bodies": {edits: []string{"max_hold: 300s", "body_memory: 67108864\n      max_hold: 300s"}},
		"an answer of Envoy's own":                 {edits: []string{theRoute, "              - match: {path: /}\n                direct_response: {status: 404}\n" + theRoute}},
	} {
		if c.envoy == (Version{}) {
			c.envoy = Oldest
		}
		for _, f := range checkText(edited(t, c.mode, c.edits...), c.envoy) {
			t.Errorf("%s: %v", name, f)
		}
	}
}

// wants returns the findings that a file's own "# want LINE: TEXT" lines ask for.
func wants(text, name string) (all []string) {
	for line := range strings.Lines(text) {
		if w, ok := strings.CutPrefix(line, "# want "); ok {
			all = append(all, name+":"+strings.TrimSpace(w))
		}
	}
	return all
}

func TestManyFaultsAtOnce(t *testing.T) {
	name := "testdata/check/many.yaml"
	all, err := Check(Files{Bootstrap: name}, Oldest)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range all {
		got = append(got, f.String())
	}
	if want := wants(read(t, name), name); len(want) < 20 || !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestEveryFormIsJudgedAlike has the faults of two files found in JSON and with the other spelling of keys too.
func TestEveryFormIsJudgedAlike(t *testing.T) {
	for _, edits := range [][]string{nil, {"max_message_timeout: 600s", "#", "[envoy.lb, weir]", "[]", weirBreakers, "#", noTimeout, "#", strip, "", "type: STATIC                   ", "type: 0 #"}} {
		text := edited(t, envoy.Buffered, edits...)
		want := ruleTexts(checkText(text, Oldest))
		if (len(want) == 0) != (edits == nil) {
			t.Fatalf("the test's own file has %d findings", len(want))
		}
		var root any
		if err := yaml.Load([]byte(text), &root); err != nil {
			t.Fatal(err)
		}
		for form, text := range map[string]string{"JSON": marshal(t, root, "  "), "camelCase": marshal(t, camelKeys(root), "\t")} {
			if got := ruleTexts(checkText(text, Oldest)); !slices.Equal(got, want) {
				t.Errorf("%s: got\n%v\nwant\n%v", form, got, want)
			}
		}
	}
}

func ruleTexts(all []Finding) (texts []string) {
	for _, f := range all {
		texts = append(texts, f.Rule+": "+f.Text)
	}
	slices.Sort(texts)
	return slices.Compact(texts) // an anchor's fault stands twice where JSON has none
}

// TestASharedFilterIsJudgedOnce has two listeners with one anchored filter: one finding, at the anchor.
func TestASharedFilterIsJudgedOnce(t *testing.T) {
	text := edited(t, envoy.Buffered, "    filter_chains:\n    - filters:\n      - name: envoy.filters.network.http_connection_manager\n        typed_config:\n          \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager\n          stat_prefix: front",
		"    filter_chains: &chains\n    - filters:\n      - name: envoy.filters.network.http_connection_manager\n        typed_config:\n          \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager\n          stat_prefix: front",
		"response_trailer_mode: SEND", "response_trailer_mode: SKIP",
		"  # Only for comparing: the same replicas", "  - {name: second, per_connection_buffer_limit_bytes: 33554432, filter_chains: *chains}\n  # Only for comparing: the same replicas")
	all := checkText(text, Oldest)
	if len(all) != 1 || all[0].Line != lineOf(t, text, "response_trailer_mode: SKIP") {
		t.Errorf("got %v", all)
	}
}

// TestWhatLoadRefusesCheckReports reads the files that Load refuses: each of its faults is among the findings,
// with its line.
func TestWhatLoadRefusesCheckReports(t *testing.T) {
	names, _ := filepath.Glob("testdata/*.bad.yaml")
	if len(names) < 10 {
		t.Fatalf("%d files", len(names))
	}
	for _, name := range names {
		all, err := Check(Files{Bootstrap: name}, Oldest)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants(read(t, name), name) {
			if !slices.ContainsFunc(all, func(f Finding) bool {
				return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) == want && f.Rule == "serve"
			}) {
				t.Errorf("%s: no finding %q in %v", name, want, all)
			}
		}
	}
	for text, want := range map[string]string{
		"":                          "f: error: yaml: no documents in stream (serve)",
		"node: {}\n---\nnode: {}\n": "f: error: yaml: expected single document, found multiple (serve)",
	} {
		if all := checkText(text, Oldest); len(all) != 1 || all[0].String() != want {
			t.Errorf("%q: got %v, want %s", text, all, want)
		}
	}
}

func TestRoutesOfAnotherPlaceAreUnseen(t *testing.T) {
	text := edited(t, envoy.Buffered)
	begin, end := strings.Index(text, "          route_config:\n            name: front"), strings.Index(text, "          http_filters:")
	text = text[:begin] + "          rds: {route_config_name: front}\n" + text[end:]
	all := checkText(text, Oldest)
	if len(all) != 1 || all[0].Rule != "unseen" || all[0].Line != lineOf(t, text, "v3.HttpConnectionManager\n          stat_prefix: front") {
		t.Errorf("got %v", all)
	}
	all, err := Check(Files{Bootstrap: "testdata/minimal.yaml"}, Oldest) // whose filter stands in no typed connection manager
	if err != nil || len(all) == 0 || all[0].Rule != "unseen" {
		t.Errorf("got %v, %v", all, err)
	}
}

func TestFindingsAreText(t *testing.T) {
	f := Finding{"envoy.yaml", 7, Warning, "a fault", "rule"}
	got, err := json.Marshal(f)
	if want := `{"file":"envoy.yaml","line":7,"severity":"warning","text":"a fault","rule":"rule"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	if got := f.String(); got != "envoy.yaml:7: warning: a fault (rule)" {
		t.Errorf("got %s", got)
	}
	if _, err := Check(Files{Bootstrap: filepath.Join(t.TempDir(), "envoy.yaml")}, Oldest); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]Version{"1.36": {1, 36}, "1.40.0": {1, 40}, "1.36.4": Oldest, "2.0": {2, 0}} {
		var v Version
		if err := v.UnmarshalText([]byte(text)); err != nil || v != want {
			t.Errorf("%s: %v, %v", text, v, err)
		}
	}
	for _, text := range []string{"", "1", "1.35", "v1.36", "1.-36", "0.99.0", "newest"} {
		v := Newest
		if err := v.UnmarshalText([]byte(text)); err == nil || v != Newest {
			t.Errorf("%q is read as %v", text, v)
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]string{
		"1s": "1s", "0.25s": "250ms", "0s": "0s", "315576000000s": "277777h46m40s",
		"1": "", "1m": "", "-1s": "", "NaNs": "", "s": "", "": "",
	} {
		d, ok := duration(&yaml.Node{Kind: yaml.ScalarNode, Value: text})
		if ok != (want != "") || ok && d.String() != want {
			t.Errorf("%q: %v, %v", text, d, ok)
		}
	}
}

// FuzzCheck holds that any text is judged without a panic, that findings are in order and each once, and that
// they have an error exactly where Load has or a rule says so.
func FuzzCheck(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.yaml")
	for _, name := range append(names, shipped, "testdata/check/many.yaml") {
		f.Add(read(f, name))
	}
	for _, c := range badFiles {
		f.Add(edited(f, c.mode, c.edits...))
	}
	known := map[string]Severity{}
	for _, r := range Rules() {
		known[r.Name] = r.Severity
	}
	f.Fuzz(func(t *testing.T, text string) {
		all := checkText(text, Oldest)
		_, err := parseText(text)
		if refused := slices.ContainsFunc(all, func(f Finding) bool { return f.Rule == "serve" }); refused != (err != nil) {
			t.Fatalf("%q: Load: %v, findings %v", text, err, all)
		}
		seen := map[Finding]bool{}
		for i, f := range all {
			if seen[f] || known[f.Rule] != f.Severity || f.Text == "" || i > 0 && f.Line < all[i-1].Line {
				t.Fatalf("%q: %v", text, all)
			}
			seen[f] = true
		}
	})
}
