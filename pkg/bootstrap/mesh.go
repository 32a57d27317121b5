package bootstrap

import (
	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/pkg/config"
)

const (
	connectionManager = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
	routeMessage      = "envoy.config.route.v3.Route"
)

// mesh is the file as the rules see it: the HTTP connection managers that call weir, and their routes.
type mesh struct {
	*file
	root     *yaml.Node
	policy   *config.Policy // nil: it has faults
	envoy    Version
	clusters map[string]*yaml.Node
	targets  []*target // those of them that have override_host, in the order of the file
	weir     string    // the name of weir's own cluster; empty: not known
	past     []*route  // to a target, with weir's filter switched off
	managers []*manager
}

// manager is an HTTP connection manager with a filter that calls weir for at least one of its routes.
type manager struct {
	listener, node *yaml.Node
	filters        []*yaml.Node // its http_filters
	at             int          // of them, weir's
	filter         *yaml.Node   // its ExternalProcessor
	routes         []*route     // all of them; without a route_config one that stands for those not seen
	weir           []*route     // those that go through weir
}

// route is a way to a cluster.
type route struct {
	at       *yaml.Node   // the route; of several weighted clusters, the cluster's part of it
	action   *yaml.Node   // the RouteAction; nil: it has none, or is not seen
	levels   []*yaml.Node // route configuration, virtual host, route, weighted cluster
	cluster  *yaml.Node   // the cluster's name; nil: it has none, or is not seen
	path     string       // with which the paths that it matches begin; empty: with anything, or not known
	bare     bool         // it matches them all
	settings settings
}

// settings are what holds for a route's requests at weir's filter: its own fields, and the overrides of the
// route's levels, the last of which wins.
type settings struct {
	filter    *yaml.Node
	overrides []*yaml.Node
	off       *yaml.Node // where the filter is switched off; nil: it is on
}

func newMesh(in input, root *yaml.Node, envoy Version) *mesh {
	m := &mesh{file: &file{name: in.Bootstrap}, root: root, envoy: envoy}
	load := &file{name: in.Bootstrap} // what it finds wrong, parse has reported
	m.clusters = load.clusters(root)
	for _, c := range load.list(root, "static_resources", "clusters") {
		if m.clusters[load.text(c, "name")] == c && load.overridden(c) {
			m.targets = append(m.targets, m.target(c))
			m.targets[len(m.targets)-1].replicas = len(load.endpoints(c))
		}
	}
	at, policy, err := in.policyOf(load, root)
	if err == nil {
		m.policy = &policy
	}
	if name := load.weir(root, at); name != nil {
		m.weir = name.Value
	}
	seen := map[*yaml.Node]bool{}
	for _, l := range m.list(root, "static_resources", "listeners") {
		if !seen[l] {
			for _, hcm := range m.messages(l, connectionManager) {
				m.add(l, hcm)
			}
		}
		seen[l] = true
	}
	return m
}

// add appends the manager for each filter of hcm that calls weir.
func (m *mesh) add(listener, hcm *yaml.Node) {
	filters := m.list(hcm, "http_filters")
	for i, entry := range filters {
		for _, ext := range m.messages(entry, extProc) {
			g := &manager{listener: listener, node: hcm, filters: filters, at: i, filter: ext, routes: m.routes(hcm)}
			for _, r := range g.routes {
				r.settings = m.settings(ext, entry, r.levels)
				calls := m.weir != "" && m.text(m.setting(r.settings, "grpc_service"), "envoy_grpc", "cluster_name") == m.weir
				switch {
				case calls && r.settings.off == nil:
					g.weir = append(g.weir, r)
				case calls && len(r.levels) > 0 && len(m.reached(r)) > 0:
					m.past = append(m.past, r)
				}
			}
			if len(g.weir) > 0 {
				m.managers = append(m.managers, g)
			}
		}
	}
}

// routes returns the routes of a connection manager in the order of the file.
func (m *mesh) routes(hcm *yaml.Node) (all []*route) {
	config := m.get(hcm, "route_config")
	for _, host := range m.list(config, "virtual_hosts") {
		for _, r := range append(m.list(host, "routes"), m.messages(m.get(host, "matcher"), routeMessage)...) {
			action := m.get(r, "route")
			path, bare := m.paths(m.get(r, "match"))
			one := route{at: r, action: action, levels: []*yaml.Node{config, host, r}, cluster: m.get(action, "cluster"), path: path, bare: bare}
			weighted := m.list(action, "weighted_clusters", "clusters")
			for _, c := range weighted {
				part := one
				part.at, part.levels, part.cluster = c, []*yaml.Node{config, host, r, c}, m.get(c, "name")
				all = append(all, &part)
			}
			if len(weighted) == 0 {
				all = append(all, &one)
			}
		}
	}
	if config == nil {
		return []*route{{at: hcm}}
	}
	return all
}

// paths returns route.path and route.bare of a match.
func (m *mesh) paths(match *yaml.Node) (path string, bare bool) {
	for _, key := range []string{"path", "path_separated_prefix"} {
		path += m.text(match, key)
	}
	if prefix := m.get(match, "prefix"); prefix != nil {
		return prefix.Value, len(config.Pairs(match)) == 1
	}
	return path, false
}

// settings collects what the levels of a route say about the filter of an entry in the list of filters. A level may
// switch it off or on, by itself or in a FilterConfig around it.
func (m *mesh) settings(filter, entry *yaml.Node, levels []*yaml.Node) settings {
	s, name := settings{filter: filter, off: m.off(entry)}, m.text(entry, "name")
	for _, level := range levels {
		for _, p := range config.Pairs(m.get(level, "typed_per_filter_config")) {
			if p.Key.Value != name {
				continue
			}
			s.off = m.off(p.Value)
			for _, one := range m.messages(p.Value, extProcPerRoute) {
				if at := m.off(one); at != nil {
					s.off = at
				}
				if o := m.get(one, "overrides"); o != nil {
					s.overrides = append(s.overrides, o)
				}
			}
		}
	}
	return s
}

// off returns where n says disabled: true, nil if it does not.
func (m *mesh) off(n *yaml.Node) *yaml.Node {
	if at := m.get(n, "disabled"); at != nil && m.flag(n, "disabled") {
		return at
	}
	return nil
}

// setting returns what holds of a field that the overrides may have too.
func (m *mesh) setting(s settings, keys ...string) *yaml.Node {
	for i := len(s.overrides) - 1; i >= 0; i-- {
		if n := m.find(s.overrides[i], keys...); n != nil {
			return n
		}
	}
	return m.find(s.filter, keys...)
}

// through calls f for every route that goes through weir.
func (m *mesh) through(f func(g *manager, r *route)) {
	for _, g := range m.managers {
		for _, r := range g.weir {
			f(g, r)
		}
	}
}
