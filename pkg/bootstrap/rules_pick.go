package bootstrap

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

const (
	// pickHeader is the header, and pickNamespace the dynamic metadata with a key of that name, in which
	// weir's pick travels; decisionRecord is the namespace of its decision (package extproc).
	pickHeader     = "x-gateway-destination-endpoint"
	pickNamespace  = "envoy.lb"
	decisionRecord = "weir"

	headerMutation = "envoy.extensions.filters.http.header_mutation.v3.HeaderMutation"
	earlyMutation  = "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation"
	router         = "envoy.extensions.filters.http.router.v3.Router"
	routerName     = "envoy.filters.http.router"
)

// unseen says what the other rules cannot know.
func unseen(m *mesh, say say) {
	if len(m.managers) == 0 && m.clusters[m.weir] != nil {
		say(m.clusters[m.weir], "cluster %q is weir, and no route through it is in this file: what concerns filters and routes is not checked", m.weir)
	}
	m.through(func(g *manager, r *route) {
		switch at := m.get(r.action, "cluster_header"); {
		case m.get(g.node, "route_config") == nil:
			say(g.node, "the routes are not in this file: what concerns routes is not checked")
		case at != nil:
			say(at, "the request names its cluster: what concerns the cluster is not checked")
		case r.cluster != nil && m.clusters[r.cluster.Value] == nil:
			say(r.cluster, "cluster %q is not in this file, and weir routes over those that are", r.cluster.Value)
		}
	})
}

// stripHeader looks at connection managers from which a client's header reaches an override_host that reads it,
// with weir or past it.
func stripHeader(m *mesh, say say) {
	for _, g := range m.managers {
		header := false
		for _, r := range g.routes {
			for _, t := range m.reached(r) {
				header = header || t.header
			}
		}
		if !header || m.stripsEarly(g) {
			continue
		}
		before, after := m.strips(g.filters[:g.at]), m.strips(g.filters[g.at+1:])
		switch {
		case before != nil:
		case after != nil:
			say(after, "this filter removes %s after weir has set it: the pick is lost; put it before weir's", pickHeader)
		default:
			say(g.filters[g.at], "no header_mutation filter before this one removes %s: a client can name its replica", pickHeader)
		}
	}
}

// strips returns the filter that removes the pick's header from requests, nil for none.
func (m *mesh) strips(filters []*yaml.Node) *yaml.Node {
	for _, entry := range filters {
		for _, h := range m.messages(entry, headerMutation) {
			if !m.flag(entry, "disabled") && m.removes(m.list(h, "mutations", "request_mutations")) {
				return entry
			}
		}
	}
	return nil
}

func (m *mesh) stripsEarly(g *manager) bool {
	for _, h := range m.messages(m.get(g.node, "early_header_mutation_extensions"), earlyMutation) {
		if m.removes(m.list(h, "mutations")) {
			return true
		}
	}
	return false
}

func (m *mesh) removes(mutations []*yaml.Node) bool {
	for _, one := range mutations {
		if strings.EqualFold(m.text(one, "remove"), pickHeader) {
			return true
		}
	}
	return false
}

// pickRemoved is the strip in the wrong place: what a route removes, the router removes, after weir.
func pickRemoved(m *mesh, say say) {
	m.through(func(_ *manager, r *route) {
		for _, level := range r.levels {
			for _, h := range m.list(level, "request_headers_to_remove") {
				if strings.EqualFold(h.Value, pickHeader) {
					say(h, "request_headers_to_remove works after the filters: it takes weir's own pick out of the header too; remove a client's in a header_mutation filter before weir")
				}
			}
		}
	})
}

func filterOrder(m *mesh, say say) {
	for _, g := range m.managers {
		for _, entry := range g.filters[g.at+1:] {
			if !m.isRouter(entry) {
				say(entry, "filter %q runs after weir, when a hold is over: put it before, so that weir is the last before the router", m.text(entry, "name"))
			}
		}
	}
}

// filterOff looks for routes to a pool that skip weir.
func filterOff(m *mesh, say say) {
	for _, r := range m.past {
		for _, t := range m.reached(r) {
			say(r.settings.off, "weir's filter is off here: requests to cluster %q go past the gate, and weir does not know of the replicas' work for them", t.name)
		}
	}
}

func oneRouter(m *mesh, say say) {
	for _, g := range m.managers {
		for i, entry := range g.filters {
			last := i == len(g.filters)-1
			switch is := m.isRouter(entry); {
			case is && !last:
				say(entry, "the router is not the last filter: Envoy refuses that")
			case last && !is:
				say(entry, "the last filter is not the router: Envoy refuses that")
			}
		}
	}
}

func (m *mesh) isRouter(entry *yaml.Node) bool {
	return m.text(entry, "name") == routerName || len(m.messages(entry, router)) > 0
}

// receives reports whether Envoy takes a namespace of dynamic metadata from weir, and where that stands or should.
func (m *mesh) receives(r *route, namespace string) (bool, *yaml.Node) {
	untyped := m.setting(r.settings, "metadata_options", "receiving_namespaces", "untyped")
	if untyped == nil {
		return false, r.settings.filter
	}
	return m.has(untyped, namespace), untyped
}

func metadataNamespace(m *mesh, say say) {
	m.through(func(_ *manager, r *route) {
		for _, t := range m.reached(r) {
			if ok, at := m.receives(r, pickNamespace); !ok && t.metadata {
				say(at, "metadata_options.receiving_namespaces.untyped lacks %s, where override_host of cluster %q looks for the pick", pickNamespace, t.name)
			}
		}
	})
}

func logNamespace(m *mesh, say say) {
	m.through(func(_ *manager, r *route) {
		if ok, at := m.receives(r, decisionRecord); !ok {
			say(at, "metadata_options.receiving_namespaces.untyped lacks %s: access log and stats see no decision of weir's", decisionRecord)
		}
	})
}

// Attributes are the filter's alone: Envoy has the override's fields and does not read them.
func poolAttribute(m *mesh, say say) {
	m.through(func(g *manager, r *route) {
		if _, given := m.metadata(r)["weir-pool"]; !given {
			m.attribute(g, "request_attributes", "xds.cluster_name", "weir does not learn the pool, and picks nothing", say)
		}
	})
}

func servedAttribute(m *mesh, say say) {
	for _, g := range m.managers {
		m.attribute(g, "response_attributes", "upstream.address", "weir cannot tell which replica served, and whether Envoy followed the pick", say)
	}
}

func (m *mesh) attribute(g *manager, list, name, why string, say say) {
	if at := m.get(g.filter, list); at == nil {
		say(g.filter, "%s lacks %s: %s", list, name, why)
	} else if !m.has(at, name) {
		say(at, "%s lacks %s: %s", list, name, why)
	}
}
