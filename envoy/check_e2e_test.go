package envoy_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	check "github.com/weirproxy/weir/pkg/bootstrap"
)

// Places in bootstrap.yaml that several faults change, each there once.
const (
	atFilter   = "              message_timeout: 1s  "
	atTimeout  = "                  timeout: 0s                   #"
	atLog      = "          - name: envoy.access_loggers.file\n"
	atFallback = "            fallback_policy:  "
	atRoute    = "              - match: {prefix: /}\n                route: *replicas"
	atBulk     = "              - match: {prefix: /, headers: [{name: x-weir-class,"
	atLimit    = "              request_body_buffer_limit: 33554432         # 32"
	listenerAt = "    per_connection_buffer_limit_bytes: 33554432   #"
	theStrip   = "          - name: envoy.filters.http.header_mutation      # a client must not name a host, whether weir is up or down\n            typed_config:\n              \"@type\": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation\n              mutations: {request_mutations: [{remove: x-gateway-destination-endpoint}]}\n"
	afterWeir  = "          # ---- end of 3 of 4"
	atRouter   = "\n          - name: envoy.filters.http.router\n            typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}\n\n  # Only"
	fromHeader = "            - metadata: {key: envoy.lb, path: [{key: x-gateway-destination-endpoint}]}\n"
	fromMeta   = "            - header: x-gateway-destination-endpoint      # safe because the first filter removes a client's\n"
)

// rulesOf returns the names of the rules that weir check has against a file, each once.
func rulesOf(t *testing.T, file string, version check.Version) (names []string) {
	t.Helper()
	all, err := check.Check(check.Files{Bootstrap: file}, version)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		names = append(names, f.Rule)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestCheckKnowsTheVersions has weir check go by the Envoys that the tests run, and find nothing in bootstrap.yaml.
func TestCheckKnowsTheVersions(t *testing.T) {
	if !strings.HasPrefix(envoy.Oldest, check.Oldest.String()+".") || !strings.HasPrefix(envoy.Newest, check.Newest.String()+".") {
		t.Errorf("weir check knows %v to %v, the tests run %s and %s", check.Oldest, check.Newest, envoy.Oldest, envoy.Newest)
	}
	for _, mode := range []envoy.Mode{envoy.Buffered, envoy.Streamed} {
		for _, v := range []check.Version{check.Oldest, check.Newest} {
			file := filepath.Join(t.TempDir(), "envoy.yaml")
			if err := os.WriteFile(file, bootstrap(t, envoy.Params{Mode: mode}), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := rulesOf(t, file, v); len(got) > 0 {
				t.Errorf("%s, Envoy %v: %v", mode, v, got)
			}
		}
	}
}

// refused are faults that Envoy itself refuses. newest: only the oldest does, and weir check -envoy knows.
var refused = []struct {
	rule   string
	newest bool // the newest Envoy takes it
	edits  []string
}{
	{rule: "fallback", edits: []string{atFallback, "            #", "              policies:\n              - typed_extension_config:\n                  name: envoy.load_balancing_policies.least_request", "            unused:\n              - typed_extension_config:\n                  name: envoy.load_balancing_policies.least_request"}},
	{rule: "override-sources", edits: []string{fromHeader, "", fromMeta, ""}},
	{rule: "request-trailer-mode", edits: []string{" request_body_mode: BUFFERED", " request_body_mode: FULL_DUPLEX_STREAMED"}},
	{rule: "router", edits: []string{atRouter, "\n  # Only"}},
	{rule: "http2", edits: []string{"          http2_protocol_options:\n            connection_keepalive: {interval: 2s, timeout: 3s}", "          http_protocol_options: {}"}},
	{rule: "newer-envoy", newest: true, edits: []string{atFilter, "              allow_content_length_header: true\n" + atFilter}},
	{rule: "newer-envoy", newest: true, edits: []string{atFilter, "              emit_client_span: false\n" + atFilter}},
	{rule: "newer-envoy", newest: true, edits: []string{atFallback, "            selected_host_key: {key: weir.served, path: [{key: endpoint}]}\n" + atFallback}},
	{rule: "newer-envoy", newest: true, edits: []string{atLog, "          - name: envoy.access_loggers.stats\n            typed_config:\n              \"@type\": type.googleapis.com/envoy.extensions.access_loggers.stats.v3.Config\n              stats_scope: {prefix: weir}\n" + atLog}},
}

func TestEnvoyRefusesWhatCheckSays(t *testing.T) {
	eachVersion(t, func(t *testing.T, path string) {
		for _, c := range refused {
			config, dir := bootstrap(t, envoy.Params{}, c.edits...), t.TempDir()
			err := envoy.ValidateConfig(t.Context(), path, dir, config)
			var version check.Version
			if verr := version.UnmarshalText([]byte(filepath.Base(t.Name()))); verr != nil {
				t.Fatal(verr)
			}
			rules := rulesOf(t, filepath.Join(dir, "validate.yaml"), version)
			if takes := c.newest && version == check.Newest; takes != (err == nil) || takes != (len(rules) == 0) || !takes && !slices.Equal(rules, []string{c.rule}) {
				t.Errorf("%s, edits %q: Envoy says %v; weir check %v", c.rule, c.edits, err, rules)
			}
		}
	})
}

// misled are faults that Envoy takes without a word. show makes the harm of each seen, with one seat per replica.
var misled = []struct {
	rules  []string
	mode   envoy.Mode
	oldest bool // with the oldest Envoy, else with the newest
	edits  []string
	show   func(t *testing.T, r *rig)
}{
	{rules: []string{"hold-timeout"}, edits: []string{"max_message_timeout: 600s", "max_message_timeout: 304.9s"}, show: holdIsCut(200, time.Second)},
	{rules: []string{"hold-timeout", "serve"}, edits: []string{"max_message_timeout: 600s", "max_message_timeout: 600s\n              max_message_timeout: 2s"}, show: holdIsCut(200, time.Second)},
	{rules: []string{"key-twice", "trailer-mode"}, mode: envoy.Streamed, edits: []string{"response_trailer_mode: SEND ", "response_trailer_mode: SEND\n                response_trailer_mode: SKIP #"}, show: leaseEndsEarly},
	{rules: []string{"message-timeout"}, edits: []string{" message_timeout: 1s  ", " message_timeout: 0.02s  "}, show: largeGoesPast(30 << 20)},
	{rules: []string{"no-message-timeout"}, edits: []string{" message_timeout: 1s  ", " message_timeout: 0s  "}, show: nothingIsPicked},
	{rules: []string{"forward-rules"}, edits: []string{atFilter, "              forward_rules: {allowed_headers: {patterns: [{prefix: content-}]}}\n" + atFilter}, show: promptIsUnread},
	{rules: []string{"forward-rules"}, edits: []string{atFilter, "              forward_rules: {disallowed_headers: {patterns: [{exact: 'x-weir-class'}]}}\n" + atFilter}, show: classIsUnread},
	{rules: []string{"mutation-rules"}, edits: []string{atFilter, "              mutation_rules: {disallow_all: true}\n" + atFilter}, show: headersAreLost},
	{rules: []string{"status-on-error"}, edits: []string{"status_on_error: {code: ServiceUnavailable}", "status_on_error: {code: OK}"}, show: failsWith500},
	{rules: []string{"filter-off"}, edits: []string{atRoute, strings.Replace(atRoute, "                route:", "                typed_per_filter_config: {envoy.filters.http.ext_proc: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute, disabled: true}}\n                route:", 1)}, show: nothingIsPicked},
	{rules: []string{"weir-health"}, mode: envoy.Streamed, edits: []string{"    health_checks: [{timeout: 0.5s,", "    # [{"}, show: goneForGood},
	{rules: []string{"weir-health"}, mode: envoy.Streamed, edits: []string{"healthy_panic_threshold: {value: 0}", "healthy_panic_threshold: {value: 50}"}, show: goneForGood},
	{rules: []string{"idle-timeout"}, edits: []string{"stream_idle_timeout: 900s             #", "stream_idle_timeout: 1s #"}, show: holdIsCut(504, time.Second)},
	{rules: []string{"idle-timeout"}, mode: envoy.Streamed, edits: []string{atTimeout, "                  idle_timeout: 1s\n" + atTimeout}, show: holdIsCut(504, time.Second)},
	{rules: []string{"route-timeout"}, edits: []string{atTimeout, "                  timeout: 1s #"}, show: answerIsCut},
	{rules: []string{"stream-duration"}, edits: []string{atTimeout, "                  max_stream_duration: {max_stream_duration: 1s}\n" + atTimeout}, show: answerIsCut},
	{rules: []string{"trailer-mode"}, mode: envoy.Streamed, edits: []string{"response_trailer_mode: SEND", "response_trailer_mode: SKIP"}, show: leaseEndsEarly},
	{rules: []string{"response-header-mode"}, edits: []string{"response_header_mode: SEND", "response_header_mode: SKIP"}, show: servedIsUnknown},
	{rules: []string{"served-attribute"}, edits: []string{"[upstream.address]", "[response.code]"}, show: servedIsUnknown},
	{rules: []string{"request-header-mode"}, edits: []string{"request_header_mode: SEND", "request_header_mode: SKIP"}, show: nothingIsPicked},
	{rules: []string{"pool-attribute"}, edits: []string{"request_attributes: [xds.cluster_name] ", "#"}, show: nothingIsPicked},
	{rules: []string{"ignored-replies"}, edits: []string{atFilter, "              observability_mode: true\n" + atFilter}, show: nothingIsPicked},
	{rules: []string{"body-mode"}, edits: []string{" request_body_mode: BUFFERED", " request_body_mode: STREAMED"}, show: promptIsUnread},
	{rules: []string{"body-mode"}, edits: []string{" request_body_mode: BUFFERED", " #"}, show: promptIsUnread},
	{rules: []string{"body-partial"}, edits: []string{" request_body_mode: BUFFERED", " request_body_mode: BUFFERED_PARTIAL", listenerAt, "    per_connection_buffer_limit_bytes: 65536 #", atLimit, "              request_body_buffer_limit: 65536 #"}, show: promptIsCut},
	{rules: []string{"proxy-continue"}, edits: []string{"          stat_prefix: front\n", "          stat_prefix: front\n          proxy_100_continue: true\n"}, show: nobodyContinues},
	{rules: []string{"response-body-mode"}, edits: []string{"response_body_mode: NONE", "response_body_mode: BUFFERED"}, show: answerIsCollected},
	{rules: []string{"buffer-too-large"}, edits: []string{atLimit, "              request_body_buffer_limit: 67108864 # 32", listenerAt, "    per_connection_buffer_limit_bytes: 67108864 #"}, show: largeGoesPast(40 << 20)},
	{rules: []string{"buffer-default"}, edits: []string{atLimit, "              #", listenerAt, "    #"}, show: isTooLarge(http.DefaultClient, 2<<20)},
	{rules: []string{"buffer-default"}, oldest: true, edits: []string{listenerAt, "    #"}, show: isTooLarge(http.DefaultClient, 2<<20)},
	{rules: []string{"buffer-default"}, oldest: true, edits: []string{"{initial_stream_window_size: 33554432, initial_connection_window_size: 33554432}", "{}"}, show: isTooLarge(http2Client, 20<<20)},
	{rules: []string{"strip-header"}, edits: []string{theStrip, ""}, show: clientNamesReplica},
	{rules: []string{"filter-order", "strip-header"}, edits: []string{fromHeader, "", theStrip, "", afterWeir, theStrip + afterWeir}, show: pickIsNotServed},
	{rules: []string{"routed-cluster"}, edits: []string{"                  cluster: replicas   ", "                  cluster: replicas_round_robin #"}, show: nothingIsPicked},
	{rules: []string{"metadata-value"}, edits: []string{"{cluster_name: weir}}\n", "{cluster_name: weir}, initial_metadata: [{key: weir-pool, value: replica}]}\n"}, show: nothingIsPicked},
	{rules: []string{"metadata-namespace"}, edits: []string{fromMeta, "", "[envoy.lb, weir]", "[weir]"}, show: pickIsNotServed},
	{rules: []string{"pick-removed"}, edits: []string{fromHeader, "", atLimit, "              request_headers_to_remove: [x-gateway-destination-endpoint]\n" + atLimit}, show: pickIsNotServed},
	{rules: []string{"metadata-command"}, edits: []string{"{cluster_name: weir}}\n", "{cluster_name: weir}, initial_metadata: [{key: weir-class, value: '%REQ(x-class)%'}]}\n"}, show: clientNamesClass},
	{rules: []string{"log-namespace"}, edits: []string{"[envoy.lb, weir]", "[envoy.lb]"}, show: decisionIsNotLogged},
	{rules: []string{"bulk-fail-open"}, edits: []string{"failure_mode_allow: false, ", ""}, show: bulkGoesPast},
	{rules: []string{"bulk-fail-open"}, edits: []string{atBulk, "              - match: {prefix: /}\n                route: {cluster: replicas, timeout: 0s, retry_policy: {retry_on: connect-failure}}\n" + atBulk}, show: bulkGoesPast},
	{rules: []string{"bulk-fail-open"}, edits: []string{"{exact: bulk}", "{exact: Bulk}"}, show: bulkGoesPast},
	{rules: []string{"bulk-fail-open"}, edits: []string{"{exact: bulk}}", "{exact: bulk}, invert_match: true}"}, show: bulkGoesPast},
	{rules: []string{"weir-breaker"}, edits: []string{"max_requests: 100000}", "max_requests: 4}"}, show: overflowGoesPast},
	{rules: []string{"original-dst"}, edits: []string{
		atRoute, "              - match: {prefix: /ready}\n                route: {cluster: any, timeout: 0s}\n" + atRoute,
		"  - name: replicas\n", "  - {name: any, type: ORIGINAL_DST, lb_policy: CLUSTER_PROVIDED, original_dst_lb_config: {use_http_header: true}}\n  - name: replicas\n"}, show: clientNamesAnyHost},
}

// unshown are the rules that no real Envoy shows here, and why.
var unshown = map[string]string{
	"unseen": "of what is not in the file", "flow-secret": "weir's own", "affinity-body-key": "weir's own", "body-memory": "weir's own", "request-timeout": "a body that never ends",
	"host-removal": "EDS, which weir does not read", "keepalive": "a weir that hangs", "retries": "a death under load", "no-retry": "a replica's death",
}

// TestEveryRuleIsShown holds that each rule has a file that Envoy refuses or misbehaves on, or a reason why not.
func TestEveryRuleIsShown(t *testing.T) {
	shown := map[string]bool{"replicas-breaker": true, "upgrade": true} // by TestBreakers and TestTunnels
	for _, c := range refused {
		shown[c.rule] = true
	}
	for _, c := range misled {
		for _, name := range c.rules {
			shown[name] = true
		}
	}
	for _, r := range check.Rules() {
		if _, not := unshown[r.Name]; not == shown[r.Name] {
			t.Errorf("rule %s: shown %v, and a reason why not %q", r.Name, shown[r.Name], unshown[r.Name])
		}
	}
}

// TestMisledAsCheckSays runs Envoy with files that weir check has something against.
func TestMisledAsCheckSays(t *testing.T) {
	for _, c := range misled {
		t.Run(strings.Join(c.rules, " and "), func(t *testing.T) {
			t.Parallel() // most of the time is Envoy's wait for weir's first health check
			version := envoy.Newest
			if c.oldest {
				version = envoy.Oldest
			}
			r := startRig(t, find(t, version), rigOptions{mode: c.mode, edits: c.edits})
			if got := rulesOf(t, filepath.Join(r.Dir, "envoy.yaml"), check.Oldest); !slices.Equal(got, c.rules) {
				t.Errorf("weir check finds %v", got)
			}
			r.listen(t, 1)
			eventually(t, "weir is healthy", func() bool {
				page, err := r.Get("/clusters")
				for line := range bytes.Lines(page) {
					if bytes.HasPrefix(line, []byte("weir::")) && bytes.HasSuffix(line, []byte("health_flags::healthy\n")) {
						return err == nil
					}
				}
				return false
			})
			c.show(t, r)
		})
	}
}

// TestTheLeastOverrideHolds is the other side of rule hold-timeout: at max_hold + 5 s a hold outlives message_timeout.
func TestTheLeastOverrideHolds(t *testing.T) {
	r := startRig(t, find(t, envoy.Newest), rigOptions{edits: []string{"max_message_timeout: 600s", "max_message_timeout: 305s"}})
	if got := rulesOf(t, filepath.Join(r.Dir, "envoy.yaml"), check.Oldest); len(got) > 0 {
		t.Errorf("weir check finds %v", got)
	}
	r.serve(t, 1)
	heldGoesOn(t, r)
}
