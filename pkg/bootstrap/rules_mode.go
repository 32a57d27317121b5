package bootstrap

import "go.yaml.in/yaml/v4"

// The names of Envoy's enums, in the order of their numbers.
var (
	sendModes = []string{"DEFAULT", "SEND", "SKIP"}
	bodyModes = []string{"NONE", "STREAMED", "BUFFERED", "BUFFERED_PARTIAL", "FULL_DUPLEX_STREAMED", "GRPC"}
)

// mode reads one of the processing modes that hold for a route, and where it stands or should.
func (m *mesh) mode(r *route, key string, names []string) (mode string, at *yaml.Node) {
	modes := m.setting(r.settings, "processing_mode")
	if at = m.get(modes, key); at == nil {
		at = modes
	}
	if at == nil {
		at = r.settings.filter
	}
	return m.enum(modes, key, names...), at
}

// requestBody is the mode in which a route's request bodies reach weir.
func (m *mesh) requestBody(r *route) string {
	mode, _ := m.mode(r, "request_body_mode", bodyModes)
	return mode
}

// buffered reports whether Envoy buffers the body, and runs a timer on each message to weir.
func (m *mesh) buffered(r *route) bool {
	mode := m.requestBody(r)
	return mode == "BUFFERED" || mode == "BUFFERED_PARTIAL"
}

// eachMode calls f with one of the modes of every route.
func (m *mesh) eachMode(key string, names []string, f func(mode string, at *yaml.Node)) {
	m.through(func(_ *manager, r *route) { f(m.mode(r, key, names)) })
}

func trailerMode(m *mesh, say say) {
	m.eachMode("response_trailer_mode", sendModes, func(mode string, at *yaml.Node) {
		if mode != "SEND" {
			say(at, "response_trailer_mode is not SEND: weir's stream may end with the response headers, and the answer's load is given back while it runs")
		}
	})
}

func requestHeaderMode(m *mesh, say say) {
	m.eachMode("request_header_mode", sendModes, func(mode string, at *yaml.Node) {
		if mode == "SKIP" {
			say(at, "request_header_mode is SKIP: weir needs the headers first, and refuses the stream")
		}
	})
}

func responseHeaderMode(m *mesh, say say) {
	m.eachMode("response_header_mode", sendModes, func(mode string, at *yaml.Node) {
		if mode == "SKIP" {
			say(at, "response_header_mode is SKIP: weir learns neither which replica served nor the status")
		}
	})
}

func bodyMode(m *mesh, say say) {
	why := map[string]string{
		"NONE":     "weir sees no prompt, and picks by load alone",
		"STREAMED": "the request may leave before its body is read, so that weir picks at the headers, by load alone",
		"GRPC":     "it is for gRPC bodies, which prompts are not",
	}
	m.through(func(_ *manager, r *route) {
		mode, at := m.mode(r, "request_body_mode", bodyModes)
		if text := why[mode]; text != "" && !(mode == "NONE" && m.tunnels(r)) {
			say(at, "request_body_mode is %s: %s; use BUFFERED or FULL_DUPLEX_STREAMED", mode, text)
		}
	})
}

func bodyPartial(m *mesh, say say) {
	m.eachMode("request_body_mode", bodyModes, func(mode string, at *yaml.Node) {
		if mode == "BUFFERED_PARTIAL" {
			say(at, "request_body_mode is BUFFERED_PARTIAL: of a body over the buffer limit weir sees the start, and counts the rest by its Content-Length; BUFFERED and FULL_DUPLEX_STREAMED show it all, and Envoy 1.40 leaves some HTTP/1.1 bodies just above that limit without an answer")
		}
	})
}

func requestTrailerMode(m *mesh, say say) {
	m.through(func(_ *manager, r *route) {
		mode, at := m.mode(r, "request_trailer_mode", sendModes)
		if mode != "SEND" && m.requestBody(r) == "FULL_DUPLEX_STREAMED" {
			say(at, "request_body_mode FULL_DUPLEX_STREAMED needs request_trailer_mode SEND: Envoy refuses it otherwise")
		}
	})
}

func responseBodyMode(m *mesh, say say) {
	m.eachMode("response_body_mode", bodyModes, func(mode string, at *yaml.Node) {
		switch mode {
		case "NONE":
		case "BUFFERED", "BUFFERED_PARTIAL":
			say(at, "response_body_mode is %s: Envoy collects an answer before the client sees any of it; use NONE", mode)
		default:
			say(at, "response_body_mode is %s: every chunk of an answer passes weir, which has no use for it; use NONE", mode)
		}
	})
}

func ignoredReplies(m *mesh, say say) {
	for _, g := range m.managers {
		if at := m.get(g.filter, "observability_mode"); m.flag(at) {
			say(at, "observability_mode: Envoy does not wait for weir, and ignores its picks and refusals")
		}
		if at := m.get(g.filter, "disable_immediate_response"); m.flag(at) {
			say(at, "disable_immediate_response: a request that weir refuses goes on")
		}
	}
}

// newer are the fields and types that Envoys of the supported range lack, as measured: the oldest refuses each.
var newer = []struct {
	message, key string // without a key the message itself
	since        Version
}{
	{extProc, "allow_content_length_header", Version{1, 38}},
	{extProc, "emit_client_span", Version{1, 40}},
	{overrideHost, "selected_host_key", Version{1, 38}},
	{statsLogger, "", Version{1, 38}},
	{statsLogger, "stats_scope", Version{1, 39}},
}

const statsLogger = "envoy.extensions.access_loggers.stats.v3.Config"

func newerEnvoy(m *mesh, say say) {
	for _, one := range newer {
		if !m.envoy.Before(one.since) {
			continue
		}
		for _, n := range m.messages(m.root, one.message) {
			if one.key == "" {
				say(n, "%s needs Envoy %s", one.message, one.since)
			} else if at := m.get(n, one.key); at != nil {
				say(at, "%s needs Envoy %s", one.key, one.since)
			}
		}
	}
}
