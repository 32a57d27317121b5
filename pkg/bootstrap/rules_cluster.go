package bootstrap

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

const protocolOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// target is a cluster with override_host.
type target struct {
	at               *yaml.Node
	name             string
	policies         []*yaml.Node // its override_host policies, as far as they have a body
	header, metadata bool         // where these look for weir's pick
	replicas         int          // its endpoints in the file
}

func (m *mesh) target(c *yaml.Node) *target {
	t := &target{at: c, name: m.text(c, "name"), policies: m.messages(m.get(c, "load_balancing_policy"), overrideHost)}
	for _, p := range t.policies {
		for _, s := range m.list(p, "override_host_sources") {
			path := m.list(s, "metadata", "path")
			metadata := len(path) == 1 && m.text(path[0], "key") == pickHeader && m.text(s, "metadata", "key") == pickNamespace
			t.metadata = t.metadata || metadata
			t.header = t.header || strings.EqualFold(m.text(s, "header"), pickHeader)
		}
	}
	return t
}

// reached returns the targets that a route may reach: all of them when its cluster is not seen.
func (m *mesh) reached(r *route) []*target {
	if r.cluster != nil {
		if i := slices.IndexFunc(m.targets, func(t *target) bool { return t.name == r.cluster.Value }); i >= 0 {
			return m.targets[i : i+1]
		}
		return nil
	}
	if len(r.levels) == 0 || m.get(r.action, "cluster_header") != nil {
		return m.targets
	}
	return nil
}

// eachReached calls f once for each target that routes through weir reach.
func (m *mesh) eachReached(f func(t *target)) {
	seen := map[*target]bool{}
	m.through(func(_ *manager, r *route) {
		for _, t := range m.reached(r) {
			if !seen[t] {
				f(t)
			}
			seen[t] = true
		}
	})
}

func overrideSources(m *mesh, say say) {
	m.eachReached(func(t *target) {
		for _, p := range t.policies {
			if !t.header && !t.metadata {
				say(p, "override_host_sources has neither the metadata %s with the path %s nor a header of that name: weir's pick is not followed", pickNamespace, pickHeader)
			}
		}
	})
}

func fallback(m *mesh, say say) {
	m.eachReached(func(t *target) {
		for _, p := range t.policies {
			if m.get(p, "fallback_policy") == nil {
				say(p, "override_host has no fallback_policy: Envoy refuses that")
			}
		}
	})
}

func (m *mesh) originalDst(c *yaml.Node) bool {
	return m.enum(c, "type", "STATIC", "STRICT_DNS", "LOGICAL_DNS", "EDS", "ORIGINAL_DST") == "ORIGINAL_DST" ||
		m.text(c, "cluster_type", "name") == "envoy.cluster.original_dst"
}

func originalDst(m *mesh, say say) {
	m.through(func(_ *manager, r *route) {
		if r.cluster != nil && m.originalDst(m.clusters[r.cluster.Value]) {
			say(r.cluster, "cluster %q is ORIGINAL_DST: Envoy dials any address that a header names, and has no fallback; use override_host", r.cluster.Value)
		}
	})
}

func routedCluster(m *mesh, say say) {
	m.through(func(_ *manager, r *route) {
		if r.cluster == nil {
			return
		}
		if c := m.clusters[r.cluster.Value]; c != nil && !m.overridden(c) && !m.originalDst(c) {
			say(r.cluster, "this route goes through weir, and cluster %q has no override_host: weir picks nothing; switch the filter off for the route", r.cluster.Value)
		}
	})
}

func hostRemoval(m *mesh, say say) {
	m.eachReached(func(t *target) {
		changes := m.get(t.at, "health_checks") != nil || m.discovery(t.at) != nil
		if changes && !m.flag(t.at, "ignore_health_on_host_removal") {
			say(t.at, "cluster %q lacks ignore_health_on_host_removal: true: a replica taken off the list stays pickable while its health checks pass", t.name)
		}
	})
}

// protocol returns a cluster's HTTP options, nil for none.
func (m *mesh) protocol(c *yaml.Node) *yaml.Node {
	for _, n := range m.messages(m.get(c, "typed_extension_protocol_options"), protocolOptions) {
		return n
	}
	return nil
}

// http2Options returns a cluster's options of HTTP/2, in the new place or the deprecated one, nil for none.
func (m *mesh) http2Options(c *yaml.Node) *yaml.Node {
	if n := m.find(m.protocol(c), "explicit_http_config", "http2_protocol_options"); n != nil {
		return n
	}
	return m.get(c, "http2_protocol_options")
}

func http2(m *mesh, say say) {
	if c := m.clusters[m.weir]; c != nil && m.http2Options(c) == nil {
		say(c, "cluster %q is weir and has no http2_protocol_options: no request reaches weir", m.weir)
	}
}

// weirHealth is what Envoy knows of a weir that is gone: in FULL_DUPLEX_STREAMED it fails open only once a check has
// failed, and with the usual panic threshold not even then, as weir is the cluster's one endpoint.
func weirHealth(m *mesh, say say) {
	c := m.clusters[m.weir]
	panics := m.find(c, "common_lb_config", "healthy_panic_threshold")
	least, _ := m.number(panics, "value")
	switch {
	case c == nil:
	case len(m.list(c, "health_checks")) == 0:
		say(c, "cluster %q is weir and has no health_checks: while weir is gone FULL_DUPLEX_STREAMED fails requests, and a weir that hangs delays each by message_timeout", m.weir)
	case panics == nil || least > 0:
		say(c, "cluster %q is weir and has no healthy_panic_threshold of 0: with its one endpoint down Envoy calls it all the same", m.weir)
	}
}

func keepalive(m *mesh, say say) {
	c := m.clusters[m.weir]
	options := m.http2Options(c)
	if options == nil {
		return // which is a finding already
	}
	m.through(func(_ *manager, r *route) {
		if m.requestBody(r) == "FULL_DUPLEX_STREAMED" && m.get(options, "connection_keepalive") == nil {
			say(c, "cluster %q is weir and has no connection_keepalive: in FULL_DUPLEX_STREAMED nothing else ends requests at a weir that hangs, until stream_idle_timeout", m.weir)
		}
	})
}
