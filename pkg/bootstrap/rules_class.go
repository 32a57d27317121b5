package bootstrap

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/pkg/classify"
)

// metadata returns the gRPC initial metadata that weir gets with a route's requests, as far as it is weir's, by
// key: the value's node. An override replaces what the filter gives.
func (m *mesh) metadata(r *route) map[string]*yaml.Node {
	all := map[string]*yaml.Node{}
	add := func(list []*yaml.Node) {
		for _, h := range list {
			key := strings.ToLower(m.text(h, "key"))
			if at := m.get(h, "value"); at != nil && strings.HasPrefix(key, "weir-") {
				all[key] = at
			}
		}
	}
	add(m.list(m.setting(r.settings, "grpc_service"), "initial_metadata"))
	for _, o := range r.settings.overrides {
		add(m.list(o, "grpc_initial_metadata"))
	}
	return all
}

// eachValue calls f for each of weir's metadata values, in the order of their keys.
func (m *mesh) eachValue(f func(key string, at *yaml.Node)) {
	m.through(func(_ *manager, r *route) {
		all := m.metadata(r)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			f(key, all[key])
		}
	})
}

// command reports whether Envoy expands a value: a percent sign that is not doubled begins a command.
func command(value string) bool {
	return strings.Contains(strings.ReplaceAll(value, "%%", ""), "%")
}

func metadataCommand(m *mesh, say say) {
	m.eachValue(func(key string, at *yaml.Node) {
		if command(at.Value) {
			say(at, "%s is %q: Envoy fills it in from the request, so that a client can name its own; give a fixed text", key, at.Value)
		}
	})
}

func metadataValue(m *mesh, say say) {
	m.eachValue(func(key string, at *yaml.Node) {
		if m.policy == nil || command(at.Value) {
			return
		}
		switch key {
		case "weir-class":
			if i, names := class(m.policy.Route.Classes, at.Value); i < 0 {
				say(at, "weir-class %q is no class of the policy, which has %s: weir takes the first", at.Value, names)
			}
		case "weir-deadline":
			if d, err := time.ParseDuration(at.Value); err != nil || d <= 0 {
				say(at, "weir-deadline %q is no positive duration such as 30s: weir takes the class's", at.Value)
			}
		case "weir-pool":
			if c := m.clusters[at.Value]; c == nil || !m.overridden(c) {
				say(at, "weir-pool %q is no cluster with override_host: weir picks nothing", at.Value)
			}
		default:
			say(at, "weir reads no %s: it reads weir-class, weir-deadline and weir-pool", key)
		}
	})
}

// class returns the index of a class, -1 for none, and the names of all.
func class(classes []classify.Class, name string) (at int, names string) {
	all := make([]string, len(classes))
	for i, c := range classes {
		all[i] = c.Name
	}
	return slices.Index(all, name), strings.Join(all, ", ")
}
