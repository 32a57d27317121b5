package bootstrap

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/pkg/config"
)

// requestTimeout: a byte every few seconds keeps a request from being idle.
func requestTimeout(m *mesh, say say) {
	m.through(func(g *manager, r *route) {
		if !m.collected(r) {
			return
		}
		if t := m.timeout(g.node, "request_timeout", 0); t.known && t.value == 0 {
			say(t.at, "%s: a client that sends its body byte by byte keeps it in memory for ever, in Envoy and in FULL_DUPLEX_STREAMED in weir; give 60s", t.text)
		}
	})
}

// collected reports whether a route's request goes on only with the end of its body, or what weir takes for it.
func (m *mesh) collected(r *route) bool {
	return m.buffered(r) || m.requestBody(r) == "FULL_DUPLEX_STREAMED"
}

// proxyContinue is as measured on Envoy 1.36 and 1.40: without the setting Envoy itself says 100.
func proxyContinue(m *mesh, say say) {
	m.through(func(g *manager, r *route) {
		if at := m.get(g.node, "proxy_100_continue"); m.flag(at) && m.collected(r) {
			say(at, "proxy_100_continue: a client that waits for 100 sends no body, and the replica that would say it gets the headers with the body: neither goes on; leave it out, and Envoy says 100")
		}
	})
}

// upgrades looks for what asks of a connection to be another protocol's, in a mode in which Envoy waits for the end of a
// body. What the connection manager has may be undone by the route, and an upgrade may have filters without weir's.
func upgrades(m *mesh, say say) {
	m.through(func(g *manager, r *route) {
		if !m.buffered(r) {
			return
		}
		on, past := map[string]*yaml.Node{}, map[string]bool{}
		for _, u := range m.list(g.node, "upgrade_configs") {
			m.upgrade(u, on)
			past[m.upgradeType(u)] = len(m.list(u, "filters")) > 0
		}
		for _, u := range m.list(r.action, "upgrade_configs") {
			m.upgrade(u, on)
		}
		for _, name := range slices.Sorted(maps.Keys(on)) {
			if !past[name] && !m.gone(g, r, name) {
				say(on[name], "request_body_mode is %s and %s is let through: Envoy waits for the end of the body, which there is none of, so that weir answers 501; use FULL_DUPLEX_STREAMED, or NONE on a route that matches nothing else", m.requestBody(r), name)
			}
		}
	})
}

func (m *mesh) upgradeType(u *yaml.Node) string { return strings.ToLower(m.text(u, "upgrade_type")) }

// upgrade enters in on what u switches on, and takes out what it switches off.
func (m *mesh) upgrade(u *yaml.Node, on map[string]*yaml.Node) {
	name := m.upgradeType(u)
	switch enabled := m.get(u, "enabled"); {
	case name == "":
	case enabled != nil && !m.flag(enabled):
		delete(on, name)
	default:
		on[name] = u
	}
}

// tunnels reports whether a route matches nothing but requests for an upgrade or CONNECT, whose bodies are no prompts.
func (m *mesh) tunnels(r *route) bool {
	if len(r.levels) < 3 {
		return false
	}
	match := m.get(r.levels[2], "match")
	if m.get(match, "connect_matcher") != nil {
		return true
	}
	for _, h := range m.list(match, "headers") {
		if strings.EqualFold(m.text(h, "name"), "upgrade") && m.needs(h) {
			return true
		}
	}
	return false
}

// gone reports whether an earlier route of its host, for upgrades or CONNECT alone, takes all of that type before they come to
// r, however a client spells it. What a host's matcher takes has no order that is known.
func (m *mesh) gone(g *manager, r *route, name string) bool {
	if len(r.levels) < 3 || m.get(r.levels[1], "matcher") != nil {
		return false
	}
	for _, before := range g.routes {
		if before.levels[2] == r.levels[2] {
			return false
		}
		if before.levels[1] == r.levels[1] && m.takesUpgrades(m.get(before.levels[2], "match"), name) {
			return true
		}
	}
	return false
}

// takesUpgrades reports whether a route's match takes all upgrades of a type, and has no other condition.
func (m *mesh) takesUpgrades(match *yaml.Node, name string) bool {
	if name == "connect" {
		return m.get(match, "connect_matcher") != nil && len(config.Pairs(match)) == 1
	}
	headers := m.list(match, "headers")
	if m.text(match, "prefix") != "/" || len(config.Pairs(match)) != 2 || len(headers) != 1 {
		return false
	}
	h := headers[0]
	return strings.EqualFold(m.text(h, "name"), "upgrade") && m.needs(h) && m.takes(h, name) && m.takes(h, strings.ToUpper(name))
}

// bodyMemory is of FULL_DUPLEX_STREAMED, where weir keeps the bodies of those that it holds.
func bodyMemory(m *mesh, say say) {
	m.through(func(g *manager, r *route) {
		if m.policy == nil || m.requestBody(r) != "FULL_DUPLEX_STREAMED" {
			return
		}
		if text := crowded(m.policy); text != "" {
			say(g.filter, "%s", text)
		}
	})
}
