package bootstrap

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/pkg/classify"
)

// classHeader is where a client names the class of its request.
const classHeader = "x-weir-class"

// bulkAt returns where a route is said to be for a bulk class: in its metadata, or in what it matches. nil for none.
func (m *mesh) bulkAt(r *route) *yaml.Node {
	if at := m.metadata(r)["weir-class"]; m.isBulk(at) {
		return at
	}
	for _, h := range m.classMatchers(r) {
		exact := m.find(h, "string_match", "exact")
		if exact == nil {
			exact = m.get(h, "exact_match")
		}
		if m.isBulk(exact) && m.takes(h, exact.Value) {
			return exact
		}
	}
	return nil
}

func (m *mesh) isBulk(name *yaml.Node) bool {
	if name == nil {
		return false
	}
	i, _ := class(m.policy.Route.Classes, name.Value)
	return i >= 0 && m.policy.Route.Classes[i].Bulk
}

// classMatchers are what a route wants of the header that names the class.
func (m *mesh) classMatchers(r *route) (all []*yaml.Node) {
	for _, level := range r.levels {
		for _, h := range m.list(level, "match", "headers") {
			if strings.EqualFold(m.text(h, "name"), classHeader) {
				all = append(all, h)
			}
		}
	}
	return all
}

// refuses returns what keeps requests of clients that name the class from a route, nil for nothing.
func (m *mesh) refuses(r *route, class string) *yaml.Node {
	for _, h := range m.classMatchers(r) {
		if !m.takes(h, class) {
			return h
		}
	}
	return nil
}

// before returns the route that takes every request on its way to r, nil for none. Of a tree of matchers the order is
// not known.
func (m *mesh) before(g *manager, r *route) *yaml.Node {
	if len(r.levels) == 0 || m.get(r.levels[1], "matcher") != nil {
		return nil
	}
	for _, one := range g.routes {
		if one.levels[1] != r.levels[1] {
			continue
		}
		if one.levels[2] == r.levels[2] {
			return nil
		}
		if one.covers(r) {
			return one.levels[2]
		}
	}
	return nil
}

// covers reports whether a route wants nothing but a prefix, which is one of the other's.
func (r *route) covers(other *route) bool {
	return r.bare && (r.path == "/" || r.path == "" || strings.HasPrefix(other.path, r.path))
}

// bulkFailOpen wants a route for bulk, where requests that name the class get to, and that it fails closed.
func bulkFailOpen(m *mesh, say say) {
	if m.policy == nil {
		return
	}
	i := slices.IndexFunc(m.policy.Route.Classes, func(c classify.Class) bool { return c.Bulk })
	if i < 0 {
		return
	}
	name := m.policy.Route.Classes[i].Name
	for _, g := range m.managers {
		found := false
		var open *yaml.Node // failure_mode_allow where other requests pass
		for rest := g.weir; len(rest) > 0; {
			host := rest
			if n := slices.IndexFunc(rest, func(r *route) bool { return len(r.levels) > 0 && r.levels[1] != rest[0].levels[1] }); n > 0 {
				host = rest[:n]
			}
			rest = rest[len(host):]
			here, at := m.bulkIn(g, host, name, say)
			found = found || here
			if at != nil {
				open = at
			}
		}
		if !found && open != nil {
			say(open, "failure_mode_allow is true and no route is for bulk: weir gone, requests with %s: %s reach the replicas all at once; give them a route that overrides it with false", classHeader, name)
		}
	}
}

// bulkIn judges the routes of a virtual host. found: one is for bulk, be it wrong; open is failure_mode_allow where
// others let requests of the class through.
func (m *mesh) bulkIn(g *manager, routes []*route, class string, say say) (found bool, open *yaml.Node) {
	good := false
	var wrong func()
	for _, r := range routes {
		allow, at := m.setting(r.settings, "failure_mode_allow"), m.bulkAt(r)
		name := class
		if at != nil {
			found, name = true, at.Value
		}
		switch before, not := m.before(g, r), m.refuses(r, name); {
		case at == nil && m.flag(allow) && before == nil && not == nil && len(r.levels) > 0: // else the routes are not seen
			open = allow
		case at == nil:
		case before != nil:
			wrong = func() {
				say(at, "the route is for bulk, and that on line %d before it takes every request: none gets here; put this one first", before.Line)
			}
		case not != nil:
			wrong = func() { say(not, "the route is for bulk and takes no request with %s: %s", classHeader, name) }
		case m.flag(allow):
			say(at, "the route is for bulk and failure_mode_allow is true: weir gone, its requests, the held ones too, reach the replicas all at once; override it with false")
		default:
			good = true
		}
	}
	if wrong != nil && !good {
		wrong()
	}
	return found, open
}
