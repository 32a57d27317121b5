package bootstrap

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/pkg/config"
	"github.com/weirproxy/weir/pkg/discover"
	"github.com/weirproxy/weir/pkg/extproc"
)

const (
	extProc         = "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor"
	extProcPerRoute = "envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute"
)

// listen finds where weir listens: at the endpoint of the one cluster that the ext_proc filters of the
// listeners, and their overrides per route, call. Of several, the policy's ext_proc_cluster says which.
func (f *file) listen(root *yaml.Node, policy part, clusters map[string]*yaml.Node) (Address, place) {
	name := f.weir(root, policy)
	if name == nil {
		return Address{}, place{}
	}
	c := clusters[name.Value]
	if c == nil {
		f.fail(name, "cluster %q is weir and is not in static_resources.clusters", name.Value)
		return Address{}, place{}
	}
	endpoints := f.endpoints(c)
	if len(endpoints) != 1 {
		f.fail(c, "cluster %q is weir and has %d endpoints: one is needed", name.Value, len(endpoints))
		return Address{}, place{}
	}
	return f.address(endpoints[0]), f.place(endpoints[0])
}

// weir returns the name of weir's own cluster where a filter gives it, nil with a fault when that is not known.
func (f *file) weir(root *yaml.Node, policy part) *yaml.Node {
	called := f.called(root)
	names := slices.Sorted(maps.Keys(called))
	chosen := policy.find(policy.node, "ext_proc_cluster")
	switch {
	case len(names) == 0:
	case chosen != nil && called[chosen.Value] == nil:
		policy.fail(chosen, "ext_proc_cluster: no ext_proc filter calls %q: they call %s", chosen.Value, strings.Join(names, ", "))
	case chosen != nil:
		return called[chosen.Value]
	case len(names) > 1:
		f.fail(called[names[0]], "ext_proc filters call several clusters: give ext_proc_cluster in %s, one of %s", policy.called, strings.Join(names, ", "))
	default:
		return called[names[0]]
	}
	return nil
}

// called returns the clusters that the listeners' ext_proc filters call, by name, each with its first place. A
// filter that calls in another way is none of weir's, unless no other is there.
func (f *file) called(root *yaml.Node) map[string]*yaml.Node {
	listeners := f.find(root, "static_resources", "listeners")
	var services []*yaml.Node
	for _, m := range f.messages(listeners, extProc) {
		services = append(services, f.get(m, "grpc_service"))
	}
	for _, m := range f.messages(listeners, extProcPerRoute) {
		services = append(services, f.find(m, "overrides", "grpc_service"))
	}
	called := map[string]*yaml.Node{}
	var google *yaml.Node
	for _, s := range services {
		if other := f.get(s, "google_grpc"); other != nil {
			google = other
		}
		if name := f.find(s, "envoy_grpc", "cluster_name"); name != nil && called[name.Value] == nil {
			called[name.Value] = name
		}
	}
	switch {
	case len(called) > 0:
	case google != nil:
		f.fail(google, "google_grpc names no cluster, and weir listens at the endpoint of one: use envoy_grpc")
	default:
		f.fail(root, "no listener has an ext_proc filter with envoy_grpc: nothing calls weir")
	}
	return called
}

// timers are Bootstrap.Timers, each once.
func (f *file) timers(root *yaml.Node, policy part) (all []extproc.Timer) {
	name := f.weir(root, policy)
	if name == nil {
		return nil
	}
	for _, m := range f.messages(f.find(root, "static_resources", "listeners"), extProc) {
		if f.text(m, "grpc_service", "envoy_grpc", "cluster_name") != name.Value {
			continue
		}
		each, most := f.timeout(m, "message_timeout", defaultMessageTimeout), f.timeout(m, "max_message_timeout", 0)
		if t := (extproc.Timer{Message: each.value, Most: most.value}); each.known && most.known && !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

// address reads the address of weir's own endpoint.
func (f *file) address(endpoint *yaml.Node) Address {
	if path := f.text(endpoint, "address", "pipe", "path"); path != "" {
		if err := config.Socket(path); err != nil {
			f.fail(endpoint, "weir's own address: %v", err)
		}
		return Address{"unix", path}
	}
	at := f.find(endpoint, "address", "socket_address")
	if at == nil {
		f.fail(endpoint, "weir's own endpoint needs a pipe or a socket_address")
		return Address{}
	}
	raw := f.raw(at)
	text, err := discover.Endpoint(raw.Host, raw.Port)
	if err != nil {
		f.fail(at, "weir's own address: %v; or give a pipe", err)
	}
	return Address{"tcp", text}
}
