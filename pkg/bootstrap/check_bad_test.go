package bootstrap

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/envoy"
)

// edited returns the shipped file of a mode after edits, old and new text by turns.
func edited(t testing.TB, mode envoy.Mode, edits ...string) string {
	t.Helper()
	text, err := envoy.Bootstrap(envoy.Params{Mode: mode})
	for ; err == nil && len(edits) > 0; edits = edits[2:] {
		text, err = envoy.Replace(text, edits[0], edits[1])
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lineOf returns the number of the one line with a text.
func lineOf(t *testing.T, text, part string) int {
	t.Helper()
	if n := strings.Count(text, part); n != 1 {
		t.Fatalf("%q stands there %d times", part, n)
	}
	before, _, _ := strings.Cut(text, part)
	return 1 + strings.Count(before, "\n")
}

// Anchors in the shipped file, each there once.
const (
	filterEnd = "              message_timeout: 1s  "
	service   = "grpc_service: {envoy_grpc: {cluster_name: weir}}"
	strip     = `          - name: envoy.filters.http.header_mutation      # a client must not name a host, whether weir is up or down
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation
              mutations: {request_mutations: [{remove: x-gateway-destination-endpoint}]}
`
	routerEntry = `          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
`
	afterWeir = "          # ---- end of 3 of 4"
	theRoute  = "              - match: {prefix: /}\n                route: *replicas"
	bulkRoute = `              - match: {prefix: /, headers: [{name: x-weir-class, string_match: {exact: bulk}}]}
                typed_per_filter_config:
                  envoy.filters.http.ext_proc:
                    "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute
                    overrides: {failure_mode_allow: false, grpc_initial_metadata: [{key: weir-class, value: bulk}]}
`
	codec            = "codec_type: AUTO                      #"
	weirHealthChecks = "    health_checks: [{timeout: 0.5s, interval: 0.5s, no_traffic_interval: 0.5s, unhealthy_threshold: 3, healthy_threshold: 1, grpc_health_check: {}}]\n"
	noTimeout        = "timeout: 0s                   #"
	sources          = `            - metadata: {key: envoy.lb, path: [{key: x-gateway-destination-endpoint}]}
            - header: x-gateway-destination-endpoint      # safe because the first filter removes a client's
`
	overrideBody = `            "@type": type.googleapis.com/envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost`
	fallbackBody = `            fallback_policy:                    # no pick: weir is gone, or named no replica
              policies:
              - typed_extension_config:
                  name: envoy.load_balancing_policies.least_request
                  typed_config: {"@type": type.googleapis.com/envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest}
`
	breakers     = "circuit_breakers: {thresholds: [{max_connections: 2560, max_pending_requests: 1280, max_requests: 1280, max_retries: 1280}]}"
	weirBreakers = "circuit_breakers: {thresholds: [{max_connections: 1000, max_pending_requests: 100000, max_requests: 100000}]}"
	bulkOverride = "overrides: {failure_mode_allow: false, grpc_initial_metadata: [{key: weir-class, value: bulk}]}"
	perRoute     = "                typed_per_filter_config:\n                  envoy.filters.http.ext_proc:\n                    \"@type\": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute\n"
)

// prefixRoute is a route to the replicas that fails open.
func prefixRoute(prefix string) string {
	return "              - match: {prefix: " + prefix + "}\n                route: {cluster: replicas, timeout: 0s, retry_policy: {retry_on: connect-failure}}\n"
}

// overridden is the edit that gives the shipped route an override of weir's filter.
func overridden(override string) []string {
	return []string{theRoute, strings.Replace(theRoute, "                route:", perRoute+"                    "+override+"\n                route:", 1)}
}

// bad is a file derived from the shipped one, and every finding in it: rule, the line's own text, part of the text.
type bad struct {
	rule  string
	mode  envoy.Mode
	envoy Version // zero: the oldest
	edits []string
	at    string
	text  string
}

var badFiles = []bad{
	{rule: "serve", edits: []string{"max_hold: 300s", "max_hold: 300"}, at: "max_hold: 300 ", text: `max_hold: "300" is not a duration with a unit`},
	{rule: "key-twice", edits: []string{"response_body_mode: NONE ", "response_body_mode: NONE\n                response_body_mode: NONE #"}, at: "response_body_mode: NONE #", text: "response_body_mode stands twice"},
	{rule: "unseen", edits: []string{"                  cluster: replicas   ", "                  cluster_header: x-cluster #"}, at: "cluster_header: x-cluster", text: "the request names its cluster"},
	{rule: "unseen", edits: []string{"                  cluster: replicas   ", "                  cluster: elsewhere #"}, at: "cluster: elsewhere", text: `cluster "elsewhere" is not in this file`},

	{rule: "hold-timeout", edits: []string{"max_message_timeout: 600s", "max_message_timeout: 304s"}, at: "max_message_timeout: 304s", text: "max_message_timeout is 5m4s: Envoy ignores weir's override of max_hold + 5s = 5m5s"},
	{rule: "hold-timeout", edits: []string{"max_message_timeout: 600s", "#"}, at: `http.ext_proc.v3.ExternalProcessor`, text: "max_message_timeout is not given, which is 0s"},
	{rule: "hold-timeout", edits: []string{"max_hold: 300s", "max_hold: 3599s", "stream_idle_timeout: 900s             #", "stream_idle_timeout: 0s #"}, at: "max_message_timeout: 600s", text: "= 1h0m4s"},
	{rule: "no-message-timeout", edits: []string{" message_timeout: 1s  ", " message_timeout: 0s  "}, at: " message_timeout: 0s", text: "message_timeout is 0s: Envoy does not wait for weir"},
	{rule: "message-timeout", edits: []string{" message_timeout: 1s  ", " message_timeout: 0.4s  "}, at: " message_timeout: 0.4s", text: "message_timeout is 400ms: a large body"},
	{rule: "message-timeout", edits: []string{" message_timeout: 1s  ", "#"}, at: `http.ext_proc.v3.ExternalProcessor`, text: "message_timeout is not given, which is 200ms: a large body"},
	{rule: "message-timeout", edits: []string{" message_timeout: 1s  ", " message_timeout: 60s  "}, at: " message_timeout: 60s", text: "for so long each request waits"},
	{rule: "request-timeout", edits: []string{"request_timeout: 60s  ", "request_timeout: 0s  "}, at: "request_timeout: 0s", text: "request_timeout is 0s: a client that sends its body byte by byte"},
	{rule: "request-timeout", mode: envoy.Streamed, edits: []string{"request_timeout: 60s  ", "#"}, at: "v3.HttpConnectionManager\n          stat_prefix: front", text: "request_timeout is not given, which is 0s"},
	{rule: "idle-timeout", edits: []string{"stream_idle_timeout: 900s             #", "stream_idle_timeout: 359s #"}, at: "stream_idle_timeout: 359s", text: "stream_idle_timeout is 5m59s: a request held for max_hold that then waits 1m0s for its first token ends in 504; give at least 6m0s"},
	{rule: "idle-timeout", edits: []string{"          stream_idle_timeout: 900s             #", "          #"}, at: "v3.HttpConnectionManager\n          stat_prefix: front", text: "stream_idle_timeout is not given, which is 5m0s"},
	{rule: "idle-timeout", edits: []string{noTimeout, "idle_timeout: 60s\n                  " + noTimeout}, at: "idle_timeout: 60s\n", text: "idle_timeout is 1m0s"},
	{rule: "route-timeout", edits: []string{noTimeout, "#"}, at: "route: &replicas", text: "timeout is not given, which is 15s: it cuts an answer"},
	{rule: "route-timeout", edits: []string{noTimeout, "timeout: 120s #"}, at: "timeout: 120s", text: "timeout is 2m0s: it cuts an answer"},
	{rule: "stream-duration", edits: []string{noTimeout, "max_stream_duration: {max_stream_duration: 400s}\n                  " + noTimeout}, at: "{max_stream_duration: 400s}", text: "max_stream_duration is 6m40s: it counts the hold and the answer; give none, or at least 10m0s"},
	{rule: "stream-duration", edits: []string{"stream_idle_timeout: 900s             #", "common_http_protocol_options: {max_stream_duration: 60s}\n          stream_idle_timeout: 900s #"}, at: "{max_stream_duration: 60s}", text: "max_stream_duration is 1m0s"},
	{rule: "stream-duration", edits: []string{"        explicit_http_config:\n", "        common_http_protocol_options: {max_stream_duration: 60s}\n        explicit_http_config:\n"}, at: "{max_stream_duration: 60s}", text: "max_stream_duration is 1m0s"},

	{rule: "trailer-mode", edits: []string{"response_trailer_mode: SEND", "response_trailer_mode: SKIP"}, at: "response_trailer_mode: SKIP", text: "response_trailer_mode is not SEND"},
	{rule: "trailer-mode", edits: []string{"response_trailer_mode: SEND", "#"}, at: "request_header_mode: SEND", text: "response_trailer_mode is not SEND"},
	{rule: "trailer-mode", edits: overridden("overrides: {processing_mode: {request_body_mode: BUFFERED}}"), at: "processing_mode: {request_body_mode: BUFFERED}", text: "response_trailer_mode is not SEND"},
	{rule: "request-header-mode", edits: []string{"request_header_mode: SEND", "request_header_mode: SKIP"}, at: "request_header_mode: SKIP", text: "weir needs the headers first"},
	{rule: "response-header-mode", edits: []string{"response_header_mode: SEND", "response_header_mode: SKIP"}, at: "response_header_mode: SKIP", text: "weir learns neither"},
	{rule: "body-mode", edits: []string{" request_body_mode: BUFFERED", " request_body_mode: STREAMED"}, at: " request_body_mode: STREAMED", text: "request_body_mode is STREAMED: the request may leave before"},
	{rule: "body-mode", edits: []string{" request_body_mode: BUFFERED", " #"}, at: "request_header_mode: SEND", text: "request_body_mode is NONE: weir sees no prompt"},
	{rule: "body-mode", edits: []string{bulkRoute, tunnelRoute("prefix: /, headers: [{name: upgrade, present_match: false}]") + bulkRoute}, at: "overrides: {processing_mode: {request_body_mode: NONE", text: "request_body_mode is NONE: weir sees no prompt"},
	{rule: "body-mode", edits: []string{bulkRoute, tunnelRoute("prefix: /, headers: [{name: upgrade, treat_missing_header_as_empty: true, string_match: {safe_regex: {regex: '.*'}}}]") + bulkRoute}, at: "overrides: {processing_mode: {request_body_mode: NONE", text: "request_body_mode is NONE: weir sees no prompt"},
	{rule: "body-mode", edits: []string{" request_body_mode: BUFFERED", " request_body_mode: 5"}, at: " request_body_mode: 5", text: "request_body_mode is GRPC"},
	{rule: "body-partial", edits: []string{" request_body_mode: BUFFERED", " request_body_mode: BUFFERED_PARTIAL"}, at: " request_body_mode: BUFFERED_PARTIAL", text: "weir sees the start"},
	{rule: "upgrade", edits: []string{codec, "upgrade_configs: [{upgrade_type: websocket}]\n          " + codec}, at: "upgrade_configs: [{upgrade_type: websocket}]", text: "request_body_mode is BUFFERED and websocket is let through"},
	{rule: "upgrade", edits: []string{codec, "upgrade_configs: [{upgrade_type: websocket, enabled: false}]\n          " + codec, noTimeout, "upgrade_configs: [{upgrade_type: WebSocket, enabled: true}]\n                  " + noTimeout}, at: "upgrade_type: WebSocket", text: "weir answers 501"},
	{rule: "upgrade", edits: []string{codec, "upgrade_configs: [{upgrade_type: CONNECT, filters: []}]\n          " + codec}, at: "upgrade_type: CONNECT", text: "connect is let through"},
	{rule: "upgrade", edits: []string{codec, "upgrade_configs: [{upgrade_type: websocket}]\n          " + codec, bulkRoute, tunnelRoute("prefix: /x, headers: [{name: upgrade, string_match: {exact: websocket, ignore_case: true}}]") + bulkRoute}, at: "upgrade_configs: [{upgrade_type: websocket}]", text: "websocket is let through"},
	{rule: "upgrade", edits: []string{codec, "upgrade_configs: [{upgrade_type: websocket}]\n          " + codec, bulkRoute, tunnelRoute("prefix: /, headers: [{name: upgrade, string_match: {exact: websocket, ignore_case: true}}, {name: x-other}]") + bulkRoute}, at: "upgrade_configs: [{upgrade_type: websocket}]", text: "websocket is let through"},
	{rule: "upgrade", edits: []string{codec, "upgrade_configs: [{upgrade_type: websocket}]\n          " + codec, bulkRoute, tunnelRoute("prefix: /, headers: [{name: upgrade, string_match: {exact: websocket, ignore_case: true}}], runtime_fraction: {default_value: {numerator: 1}}") + bulkRoute}, at: "upgrade_configs: [{upgrade_type: websocket}]", text: "websocket is let through"},
	{rule: "upgrade", edits: []string{codec, "upgrade_configs: [{upgrade_type: websocket}]\n          " + codec, bulkRoute, tunnelRoute("prefix: /, headers: [{name: upgrade, string_match: {exact: websocket}}]") + bulkRoute}, at: "upgrade_configs: [{upgrade_type: websocket}]", text: "websocket is let through"},
	{rule: "upgrade", edits: []string{codec, "upgrade_configs: [{upgrade_type: CONNECT}]\n          " + codec, bulkRoute, tunnelRoute("prefix: /, headers: [{name: upgrade, present_match: true}]") + bulkRoute}, at: "upgrade_configs: [{upgrade_type: CONNECT}]", text: "connect is let through"},
	{rule: "upgrade", edits: []string{codec, "upgrade_configs: [{upgrade_type: CONNECT}]\n          " + codec, bulkRoute, tunnelRoute("connect_matcher: {}, headers: [{name: x-other}]") + bulkRoute}, at: "upgrade_configs: [{upgrade_type: CONNECT}]", text: "connect is let through"},
	{rule: "upgrade", edits: []string{codec, "upgrade_configs: [{upgrade_type: websocket}]\n          " + codec, theRoute, theRoute + "\n" + strings.TrimSuffix(tunnelRoute("prefix: /, headers: [{name: upgrade, present_match: true}]"), "\n")}, at: "upgrade_configs: [{upgrade_type: websocket}]", text: "websocket is let through"},
	{rule: "upgrade", edits: []string{codec, "upgrade_configs: [{upgrade_type: websocket}]\n          " + codec, bulkRoute, tunnelRoute("prefix: /, headers: [{name: upgrade, string_match: {exact: h2c}}]") + bulkRoute}, at: "upgrade_configs: [{upgrade_type: websocket}]", text: "websocket is let through"},
	{rule: "proxy-continue", edits: []string{codec, "proxy_100_continue: true\n          " + codec}, at: "proxy_100_continue", text: "neither goes on"},
	{rule: "proxy-continue", mode: envoy.Streamed, edits: []string{codec, "proxy_100_continue: true\n          " + codec}, at: "proxy_100_continue", text: "neither goes on"},
	{rule: "request-trailer-mode", edits: []string{" request_body_mode: BUFFERED", " request_body_mode: FULL_DUPLEX_STREAMED"}, at: " request_trailer_mode: SKIP", text: "needs request_trailer_mode SEND"},
	{rule: "response-body-mode", edits: []string{"response_body_mode: NONE", "response_body_mode: STREAMED"}, at: "response_body_mode: STREAMED", text: "every chunk of an answer passes weir"},
	{rule: "response-body-mode", edits: []string{"response_body_mode: NONE", "response_body_mode: BUFFERED"}, at: "response_body_mode: BUFFERED", text: "Envoy collects an answer"},
	{rule: "ignored-replies", edits: []string{filterEnd, "              observability_mode: true\n" + filterEnd}, at: "observability_mode: true", text: "ignores its picks"},
	{rule: "ignored-replies", edits: []string{filterEnd, "              disable_immediate_response: true\n" + filterEnd}, at: "disable_immediate_response: true", text: "a request that weir refuses goes on"},
	{rule: "forward-rules", edits: []string{filterEnd, "              forward_rules: {allowed_headers: {patterns: [{prefix: content-}, {safe_regex: {regex: ':.*|x-weir'}}]}}\n" + filterEnd}, at: "forward_rules:", text: "forward_rules keep x-weir-class, x-weir-deadline from weir"},
	{rule: "forward-rules", edits: []string{filterEnd, "              forward_rules: {allowed_headers: {patterns: [{suffix: s}]}, disallowed_headers: {patterns: [{exact: x-weir-class}]}}\n" + filterEnd}, at: "forward_rules:", text: "forward_rules keep :path, x-weir-class, x-weir-deadline from weir"},
	{rule: "forward-rules", edits: []string{filterEnd, "              forward_rules: {disallowed_headers: {patterns: [{contains: Tenant, ignore_case: true}, {prefix: x-session}]}}\n" + filterEnd, "max_hold: 300s", "flow: header:X-Tenant\n      max_hold: 300s", "affinity: consistent_hash(prompt_prefix)  ", "affinity: consistent_hash(header:x-session-id)  "}, at: "forward_rules:", text: "forward_rules keep x-tenant, x-session-id from weir"},
	{rule: "mutation-rules", edits: []string{filterEnd, "              mutation_rules: {disallow_all: true}\n" + filterEnd}, at: "mutation_rules:", text: "mutation_rules do not let weir set x-gateway-destination-endpoint, retry-after:"},
	{rule: "mutation-rules", edits: []string{filterEnd, "              mutation_rules: {disallow_all: true, allow_expression: {regex: x-gateway-destination-endpoint}}\n" + filterEnd}, at: "mutation_rules:", text: "do not let weir set retry-after:"},
	{rule: "mutation-rules", edits: []string{filterEnd, "              mutation_rules: {allow_expression: {regex: x-.*}, disallow_expression: {regex: x-gateway.*}}\n" + filterEnd}, at: "mutation_rules:", text: "do not let weir set x-gateway-destination-endpoint:"},
	{rule: "status-on-error", edits: []string{"status_on_error: {code: ServiceUnavailable}", "status_on_error: {code: OK}"}, at: "code: OK", text: "status_on_error is OK"},
	{rule: "status-on-error", edits: []string{"status_on_error: {code: ServiceUnavailable}", "status_on_error: {code: 204}"}, at: "code: 204", text: "status_on_error is 204"},
	{rule: "newer-envoy", envoy: Version{1, 37}, edits: []string{filterEnd, "              allow_content_length_header: true\n" + filterEnd}, at: "              allow_content_length_header: true\n", text: "allow_content_length_header needs Envoy 1.38"},
	{rule: "newer-envoy", edits: []string{filterEnd, "              emit_client_span: false\n" + filterEnd}, at: "emit_client_span: false", text: "emit_client_span needs Envoy 1.40"},
	{rule: "newer-envoy", edits: []string{fallbackBody, "            selected_host_key: {key: weir.served, path: [{key: endpoint}]}\n" + fallbackBody}, at: "selected_host_key:", text: "selected_host_key needs Envoy 1.38"},
	{rule: "newer-envoy", envoy: Version{1, 38}, edits: []string{"          - name: envoy.access_loggers.file\n", "          - typed_config:\n              \"@type\": type.googleapis.com/envoy.extensions.access_loggers.stats.v3.Config\n              stats_scope: {prefix: weir}\n          - name: envoy.access_loggers.file\n"}, at: "stats_scope", text: "stats_scope needs Envoy 1.39"},
	{rule: "newer-envoy", envoy: Version{1, 37}, edits: []string{"          - name: envoy.access_loggers.file\n", "          - typed_config:\n              \"@type\": type.googleapis.com/envoy.extensions.access_loggers.stats.v3.Config\n              stat_prefix: weir\n          - name: envoy.access_loggers.file\n"}, at: "access_loggers.stats.v3.Config", text: "needs Envoy 1.38"},

	{rule: "body-memory", mode: envoy.Streamed, edits: []string{"max_hold: 300s", "body_memory: 1140850687\n      max_hold: 300s"}, at: "http.ext_proc.v3.ExternalProcessor", text: "its classes may hold bodies of 1073741824 in each pool: those that are held can leave no memory for others, which get 503; give at least 1140850688"},
	{rule: "buffer-too-large", edits: []string{"max_hold: 300s", "body_limit: 1000000\n      max_hold: 300s", "request_body_buffer_limit: 33554432         # 32", "request_body_buffer_limit: 1000000 # 32"}, at: "per_connection_buffer_limit_bytes: 33554432   #", text: "Envoy 1.36 buffers bodies of up to 33554432 bytes, and weir's body_limit is 1000000"},
	{rule: "buffer-too-large", edits: []string{"max_hold: 300s", "body_limit: 1000000\n      max_hold: 300s", "per_connection_buffer_limit_bytes: 33554432   #", "per_connection_buffer_limit_bytes: 1000000   #"}, at: "request_body_buffer_limit: 33554432         # 32", text: "Envoy 1.40 buffers bodies of up to 33554432 bytes"},
	{rule: "buffer-too-large", envoy: Newest, edits: []string{"request_body_buffer_limit: 33554432         # 32", "request_body_buffer_limit: 33554433 # 32"}, at: "request_body_buffer_limit: 33554433", text: "up to 33554433 bytes"},
	{rule: "buffer-too-large", edits: []string{"max_hold: 300s", "body_limit: 1000\n      max_hold: 300s", "request_body_buffer_limit: 33554432         # 32", "request_body_buffer_limit: 1000 # 32", "    per_connection_buffer_limit_bytes: 33554432   #", "    #"}, at: "- name: front\n    address", text: "up to 1048576 bytes, its default"},
	{rule: "buffer-default", edits: []string{"    per_connection_buffer_limit_bytes: 33554432   #", "    #"}, at: "- name: front\n    address", text: "per_connection_buffer_limit_bytes is 1048576, Envoy's default, and Envoy 1.36 goes by it"},
	{rule: "buffer-default", envoy: Newest, edits: []string{"    per_connection_buffer_limit_bytes: 33554432   #", "    #", "              request_body_buffer_limit: 33554432         # 32", "              #"}, at: "- name: front\n    address", text: "and Envoy 1.40 goes by it"},
	{rule: "buffer-default", edits: []string{"{initial_stream_window_size: 33554432, initial_connection_window_size: 33554432}", "{}"}, at: "v3.HttpConnectionManager\n          stat_prefix: front", text: "initial_stream_window_size is 16777216"},

	{rule: "strip-header", edits: []string{strip, ""}, at: "- name: envoy.filters.http.ext_proc", text: "a client can name its replica"},
	{rule: "strip-header", edits: []string{strip, strings.Replace(strip, "typed_config", "disabled: true\n            typed_config", 1)}, at: "- name: envoy.filters.http.ext_proc", text: "a client can name its replica"},
	{rule: "pick-removed", edits: []string{"              request_body_buffer_limit: 33554432         # 32", "              request_headers_to_remove: [X-Gateway-Destination-Endpoint]\n              request_body_buffer_limit: 33554432 # 32"}, at: "request_headers_to_remove", text: "it takes weir's own pick out"},
	{rule: "filter-order", edits: []string{afterWeir, "          - name: rate\n" + afterWeir}, at: "- name: rate", text: `filter "rate" runs after weir`},
	{rule: "filter-off", edits: []string{theRoute, strings.Replace(theRoute, "                route:", perRoute+"                    disabled: true\n                route:", 1)}, at: "disabled: true", text: `requests to cluster "replicas" go past the gate`},
	{rule: "filter-off", edits: []string{theRoute, "              - match: {path: /health}\n                route: {cluster: replicas, timeout: 0s}\n                typed_per_filter_config: {envoy.filters.http.ext_proc: {disabled: true}}\n" + theRoute}, at: "disabled: true", text: `requests to cluster "replicas" go past the gate`},
	{rule: "router", edits: []string{routerEntry + "\n  # Only", "\n  # Only"}, at: "- name: envoy.filters.http.ext_proc", text: "the last filter is not the router"},
	{rule: "router", edits: []string{"          # ---- 3 of 4", strings.Replace(routerEntry, "http.router\n", "http.router # first\n", 1) + "          # ---- 2 of 3"}, at: "http.router # first", text: "the router is not the last filter"},

	{rule: "override-sources", edits: []string{sources, "            - header: x-other\n"}, at: overrideBody, text: "weir's pick is not followed"},
	{rule: "override-sources", edits: []string{sources, "            - metadata: {key: envoy.lb, path: [{key: x-other}]}\n"}, at: overrideBody, text: "weir's pick is not followed"},
	{rule: "fallback", edits: []string{fallbackBody, ""}, at: overrideBody, text: "no fallback_policy"},
	{rule: "original-dst", edits: []string{theRoute, "              - match: {prefix: /x}\n                route: {cluster: any, timeout: 0s}\n" + theRoute, "  - name: replicas\n", "  - name: any\n    type: ORIGINAL_DST\n  - name: replicas\n"}, at: "{cluster: any", text: `cluster "any" is ORIGINAL_DST`},
	{rule: "routed-cluster", edits: []string{theRoute, "              - match: {path: /health}\n                route: {cluster: replicas_round_robin, timeout: 0s}\n" + theRoute}, at: "{cluster: replicas_round_robin", text: `cluster "replicas_round_robin" has no override_host`},
	{rule: "host-removal", edits: []string{"    ignore_health_on_host_removal: true  ", "    health_checks: [{}] #"}, at: "  - name: replicas\n", text: "lacks ignore_health_on_host_removal: true"},

	{rule: "metadata-namespace", edits: []string{"[envoy.lb, weir]", "[weir]"}, at: "{untyped: [weir]}", text: `lacks envoy.lb, where override_host of cluster "replicas" looks`},
	{rule: "log-namespace", edits: []string{"[envoy.lb, weir]", "[envoy.lb]"}, at: "{untyped: [envoy.lb]}", text: "lacks weir"},
	{rule: "pool-attribute", edits: []string{"request_attributes: [xds.cluster_name] ", "request_attributes: [xds.route_name] "}, at: "request_attributes: [xds.route_name]", text: "lacks xds.cluster_name"},
	{rule: "pool-attribute", edits: []string{"request_attributes: [xds.cluster_name] ", "#"}, at: `http.ext_proc.v3.ExternalProcessor`, text: "lacks xds.cluster_name"},
	{rule: "served-attribute", edits: []string{"[upstream.address]", "[response.code]"}, at: "response_attributes:", text: "lacks upstream.address"},

	{rule: "http2", edits: []string{"          http2_protocol_options:\n            connection_keepalive: {", "          http_protocol_options: {} # {"}, at: "  - name: weir\n", text: "no request reaches weir"},
	{rule: "weir-health", edits: []string{weirHealthChecks, ""}, at: "  - name: weir\n", text: "has no health_checks"},
	{rule: "weir-health", edits: []string{"      healthy_panic_threshold: {value: 0} ", "      #"}, at: "  - name: weir\n", text: "no healthy_panic_threshold of 0"},
	{rule: "weir-health", edits: []string{"healthy_panic_threshold: {value: 0}", "healthy_panic_threshold: {value: 50}"}, at: "  - name: weir\n", text: "no healthy_panic_threshold of 0"},
	{rule: "keepalive", mode: envoy.Streamed, edits: []string{"http2_protocol_options:\n            connection_keepalive:", "http2_protocol_options: {} #"}, at: "  - name: weir\n", text: "no connection_keepalive"},
	{rule: "weir-breaker", edits: []string{weirBreakers, "#"}, at: "  - name: weir\n", text: "its max_requests is 1024: "},
	{rule: "weir-breaker", edits: []string{"max_requests: 100000}", "max_requests: 9999}"}, at: "max_requests: 9999}", text: "give at least 10000"},
	{rule: "weir-breaker", edits: []string{"max_requests: 100000}", "max_requests: 100000, priority: HIGH}"}, at: "  - name: weir\n", text: "its max_requests is 1024"},
	{rule: "replicas-breaker", edits: []string{breakers, "circuit_breakers: {thresholds: [{max_connections: 9, max_retries: 9}]}"}, at: "[{max_connections: 9, max_retries: 9}]", text: "Envoy's default of 1024 max_requests"},
	{rule: "replicas-breaker", edits: []string{breakers, "circuit_breakers: {thresholds: [{max_requests: 1024, max_retries: 9}]}"}, at: "[{max_requests: 1024, max_retries: 9}]", text: "Envoy's default of 1024 max_connections"},
	{rule: "replicas-breaker", edits: []string{"max_requests: 1280,", "max_requests: 1023,"}, at: "max_requests: 1023,", text: `cluster "replicas" has max_requests of 1023, and weir sends its 4 replicas what they have seats for, 1024: what is more gets 503`},
	{rule: "replicas-breaker", edits: []string{"{profile: 8B}", "{profile: 8B, seats: 321}"}, at: "max_requests: 1280,", text: "has max_requests of 1280, and weir sends its 4 replicas what they have seats for, 1284"},
	{rule: "no-retry", edits: []string{"retry_policy:                 # a retry goes", "hash_policy: #"}, at: "route: &replicas", text: "the route has no retry_policy: a request that finds its replica just dead fails"},
	{rule: "no-retry", edits: []string{"                    num_retries: 1\n              - match: {prefix: /}", "                    num_retries: 0\n              - match: {prefix: /}"}, at: "num_retries: 0", text: "num_retries is 0"},
	{rule: "retries", edits: []string{breakers, "circuit_breakers: {thresholds: [{max_requests: 1024, max_connections: 9}]}"}, at: "[{max_requests: 1024, max_connections: 9}]", text: "Envoy's default of 3 max_retries"},

	{rule: "metadata-command", edits: []string{service, "grpc_service: {envoy_grpc: {cluster_name: weir}, initial_metadata: [{key: weir-class, value: '%REQ(x)%'}]}"}, at: "%REQ(x)%", text: `weir-class is "%REQ(x)%": Envoy fills it in`},
	{rule: "metadata-command", edits: overridden("overrides: {grpc_initial_metadata: [{key: Weir-Deadline, value: '%DOWNSTREAM_REMOTE_ADDRESS%'}]}"), at: "%DOWNSTREAM_REMOTE_ADDRESS%", text: "weir-deadline is"},
	{rule: "metadata-value", edits: overridden("overrides: {grpc_initial_metadata: [{key: weir-class, value: batch}]}"), at: "value: batch", text: `weir-class "batch" is no class of the policy, which has interactive, bulk`},
	{rule: "metadata-value", edits: overridden("overrides: {grpc_initial_metadata: [{key: weir-deadline, value: '10'}]}"), at: "value: '10'", text: `weir-deadline "10" is no positive duration`},
	{rule: "metadata-value", edits: overridden("overrides: {grpc_initial_metadata: [{key: weir-pool, value: replicas_round_robin}]}"), at: "value: replicas_round_robin", text: `weir-pool "replicas_round_robin" is no cluster with override_host`},
	{rule: "metadata-value", edits: overridden("overrides: {grpc_initial_metadata: [{key: weir-clas, value: bulk}]}"), at: "key: weir-clas,", text: "weir reads no weir-clas"},
	{rule: "metadata-value", edits: overridden("overrides: {grpc_initial_metadata: [{key: weir-class, value: 'bulk%%'}]}"), at: "value: 'bulk%%'", text: `weir-class "bulk%%" is no class`},
	{rule: "flow-secret", edits: []string{"max_hold: 300s", "flow: header:Authorization\n      max_hold: 300s"}, at: "flow: header:Authorization", text: "flow takes the header authorization for the tenant's name, and it is a secret"},
	{rule: "flow-secret", edits: []string{"max_hold: 300s", "flow: header:x-api-key\n      max_hold: 300s"}, at: "flow: header:x-api-key", text: "the header x-api-key"},
	{rule: "affinity-body-key", edits: []string{"affinity: consistent_hash(prompt_prefix)  ", "affinity: consistent_hash(header:Prompt_Cache_Key)  "}, at: "header:Prompt_Cache_Key", text: "affinity takes a header prompt_cache_key, and clients have it in the body: use consistent_hash(prompt_cache_key)"},
	{rule: "bulk-fail-open", edits: []string{bulkRoute, prefixRoute("/") + bulkRoute}, at: "value: bulk}]}", text: "and that on line 82 before it takes every request: none gets here"},
	{rule: "bulk-fail-open", edits: []string{bulkRoute, prefixRoute("/v1") + strings.Replace(bulkRoute, "prefix: /,", "path: /v1/chat/completions,", 1)}, at: "value: bulk}]}", text: "before it takes every request"},
	{rule: "bulk-fail-open", edits: []string{"exact: bulk", "exact: Bulk"}, at: "exact: Bulk", text: "the route is for bulk and takes no request with x-weir-class: bulk"},
	{rule: "bulk-fail-open", edits: []string{"string_match: {exact: bulk}}", "string_match: {exact: bulk}, invert_match: true}"}, at: "invert_match: true", text: "takes no request with x-weir-class: bulk"},
	{rule: "bulk-fail-open", edits: []string{"string_match: {exact: bulk}", "prefix_match: bulk-"}, at: "prefix_match: bulk-", text: "takes no request with x-weir-class: bulk"},
	{rule: "bulk-fail-open", edits: []string{bulkOverride, "overrides: {failure_mode_allow: false}", "exact: bulk", "exact: Bulk"}, at: "failure_mode_allow: true", text: "no route is for bulk"},
	{rule: "bulk-fail-open", edits: []string{"failure_mode_allow: false, ", ""}, at: "value: bulk", text: "override it with false"},
	{rule: "bulk-fail-open", edits: []string{bulkOverride, "overrides: {request_attributes: []}"}, at: "exact: bulk", text: "override it with false"},
	{rule: "bulk-fail-open", edits: []string{bulkOverride, "overrides: {request_attributes: []}", "string_match: {exact: bulk}", "exact_match: bulk"}, at: "exact_match: bulk", text: "override it with false"},
	{rule: "bulk-fail-open", edits: []string{bulkOverride, "overrides: {failure_mode_allow: false}", "exact: bulk", "exact: batch"}, at: "failure_mode_allow: true", text: "no route is for bulk: weir gone, requests with x-weir-class: bulk"},
}

func TestEachRuleFindsItsFault(t *testing.T) {
	judged := map[string]bool{}
	for i, c := range badFiles {
		judged[c.rule] = true
		text := edited(t, c.mode, c.edits...)
		if c.envoy == (Version{}) {
			c.envoy = Oldest
		}
		all := checkText(text, c.envoy)
		if len(all) != 1 {
			t.Errorf("%d, %s: %d findings: %v", i, c.rule, len(all), all)
			continue
		}
		rule := Rules()[slices.IndexFunc(Rules(), func(r Rule) bool { return r.Name == c.rule })]
		got, line := all[0], lineOf(t, text, c.at)
		if got.Rule != c.rule || got.Severity != rule.Severity || got.Line != line || !strings.Contains(got.Text, c.text) {
			t.Errorf("%d: got %v\nwant line %d, %s: %s", i, got, line, c.rule, c.text)
		}
	}
	for _, r := range Rules() {
		if !judged[r.Name] {
			t.Errorf("no bad file for rule %s", r.Name)
		}
	}
}
