package bootstrap

import "go.yaml.in/yaml/v4"

const (
	// defaultBuffer and defaultWindow are Envoy's for a body over HTTP/1 and over HTTP/2, in bytes.
	defaultBuffer = 1 << 20
	defaultWindow = 16 << 20
	// defaultBreaker is each threshold of a cluster's circuit breaker.
	defaultBreaker = 1024
)

// byRequest is the oldest Envoy measured to go by request_body_buffer_limit. 1.36 reads it and goes by the
// listener's limit all the same; those between were not measured and count as 1.36.
var byRequest = Version{1, 40}

// limit returns how large a body an Envoy buffers for a route. at is where that stands, nil for the default.
func (m *mesh) limit(envoy Version, g *manager, r *route) (bytes float64, at *yaml.Node) {
	if !envoy.Before(byRequest) {
		for i := len(r.levels) - 1; i >= 0; i-- {
			if v, at := m.number(r.levels[i], "request_body_buffer_limit"); at != nil {
				return v, at
			}
		}
	}
	if v, at := m.number(g.listener, "per_connection_buffer_limit_bytes"); at != nil {
		return v, at
	}
	return defaultBuffer, nil
}

// eachBuffered calls f for every route with BUFFERED and weir's own limit.
func (m *mesh) eachBuffered(f func(g *manager, r *route, bodyLimit float64)) {
	m.through(func(g *manager, r *route) {
		if m.policy != nil && m.buffered(r) {
			f(g, r, float64(m.policy.Edge.BodyLimit))
		}
	})
}

// bufferTooLarge judges what the oldest Envoy goes by, and what the newest does, as both may run the file.
func bufferTooLarge(m *mesh, say say) {
	m.eachBuffered(func(g *manager, r *route, most float64) {
		const text = "Envoy %v buffers bodies of up to %.0f bytes%s, and weir's body_limit is %.0f: a larger one that comes in chunks goes on without weir or fails with 500"
		for _, envoy := range []Version{m.envoy, Newest} {
			switch v, at := m.limit(envoy, g, r); {
			case v <= most:
			case at == nil:
				say(g.listener, text, envoy, v, ", its default", most)
			default:
				say(at, text, envoy, v, "", most)
			}
		}
	})
}

// bufferDefault also looks at the window of HTTP/2, which bounds its bodies where the listener's limit does those
// of HTTP/1.
func bufferDefault(m *mesh, say say) {
	m.eachBuffered(func(g *manager, r *route, most float64) {
		const text = "%s is %d, Envoy's default, and Envoy %v goes by it: a larger body is answered 413, and weir's body_limit is %.0f"
		goes := byRequest
		if m.envoy.Before(byRequest) {
			goes = Oldest
			_, given := m.number(g.node, "http2_protocol_options", "initial_stream_window_size")
			codec := m.enum(g.node, "codec_type", "AUTO", "HTTP1", "HTTP2", "HTTP3")
			if given == nil && codec != "HTTP1" && most > defaultWindow {
				say(g.node, text, "http2_protocol_options.initial_stream_window_size", defaultWindow, goes, most)
			}
		}
		if _, at := m.limit(m.envoy, g, r); at == nil && most > defaultBuffer {
			say(g.listener, text, "per_connection_buffer_limit_bytes", defaultBuffer, goes, most)
		}
	})
}

// threshold returns one of the thresholds of a cluster's breaker for requests of default priority, and the
// place of its list. ok is false for Envoy's default.
func (m *mesh) threshold(c *yaml.Node, key string) (v float64, at *yaml.Node, ok bool) {
	at = c
	for _, t := range m.list(c, "circuit_breakers", "thresholds") {
		if m.enum(t, "priority", "DEFAULT", "HIGH") != "DEFAULT" {
			continue
		}
		if v, n := m.number(t, key); n != nil {
			return v, n, true
		}
		at = t
	}
	return defaultBreaker, at, false
}

// weirBreaker wants room for one class held at its bound, and for every answer that the replicas take.
func weirBreaker(m *mesh, say say) {
	c := m.clusters[m.weir]
	if c == nil || m.policy == nil {
		return
	}
	need := 0.0
	for _, c := range m.policy.Route.Classes {
		need = max(need, float64(c.MaxHeld))
	}
	m.eachReached(func(t *target) {
		v, _, _ := m.threshold(t.at, "max_requests")
		need = max(need, v)
	})
	if v, at, _ := m.threshold(c, "max_requests"); v < need {
		say(at, "cluster %q is weir, and its max_requests is %.0f: requests held and answers under way count, the next goes past weir or fails; give at least %.0f", m.weir, v, need)
	}
}

func replicasBreaker(m *mesh, say say) {
	m.eachReached(func(t *target) {
		keys := []string{"max_requests"}
		if m.http2Options(t.at) == nil {
			keys = append(keys, "max_connections") // each request of HTTP/1 has its own
		}
		for _, key := range keys {
			if _, at, ok := m.threshold(t.at, key); !ok {
				say(at, "cluster %q has Envoy's default of %d %s: give what its replicas have seats for, and what they may queue", t.name, defaultBreaker, key)
			}
		}
		if m.policy == nil {
			return
		}
		seats := t.replicas * m.policy.Replica.Seats
		if v, at, ok := m.threshold(t.at, "max_requests"); ok && v < float64(seats) {
			say(at, "cluster %q has max_requests of %.0f, and weir sends its %d replicas what they have seats for, %d: what is more gets 503 from Envoy", t.name, v, t.replicas, seats)
		}
	})
}

// noRetry looks where a route takes its retry_policy from: itself, or its virtual host.
func noRetry(m *mesh, say say) {
	m.through(func(_ *manager, r *route) {
		if r.action == nil || len(m.reached(r)) == 0 {
			return
		}
		policy := m.get(r.action, "retry_policy")
		if policy == nil {
			policy = m.get(r.levels[1], "retry_policy")
		}
		switch n := m.get(policy, "num_retries"); {
		case policy == nil:
			say(r.action, "the route has no retry_policy: a request that finds its replica just dead fails, and does not go to weir's second choice")
		case n != nil && n.Value == "0":
			say(n, "num_retries is 0: a request that finds its replica just dead fails, and does not go to weir's second choice")
		}
	})
}

func retries(m *mesh, say say) {
	m.eachReached(func(t *target) {
		if _, at, ok := m.threshold(t.at, "max_retries"); !ok {
			say(at, "cluster %q has Envoy's default of 3 max_retries: when a replica dies, that many requests at once may go to weir's second choice, and the next fail", t.name)
		}
	})
}
