package bootstrap

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/pkg/discover"
)

const (
	overrideHost     = "envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost"
	overrideHostName = "envoy.load_balancing_policies.override_host"
)

// clusters returns the file's clusters by name. Of two with one name, which Envoy refuses, it has the first.
func (f *file) clusters(root *yaml.Node) map[string]*yaml.Node {
	all := map[string]*yaml.Node{}
	for _, c := range f.list(root, "static_resources", "clusters") {
		name := f.text(c, "name")
		if first := all[name]; first != nil {
			f.fail(c, "cluster %q stands twice, first on line %d", name, first.Line)
			continue
		}
		all[name] = c
	}
	return all
}

// pools reads the clusters that weir's pick reaches, and where each stands.
func (f *file) pools(root *yaml.Node, clusters map[string]*yaml.Node) (all []Pool, at map[string]place) {
	at = map[string]place{}
	found := false
	for _, c := range f.list(root, "static_resources", "clusters") {
		name := f.text(c, "name")
		if clusters[name] != c || !f.overridden(c) {
			continue
		}
		found = true
		if p, ok := f.pool(name, c); ok {
			all, at[name] = append(all, p), f.place(c)
		}
	}
	if !found {
		f.fail(root, "no cluster has the load balancing policy override_host: weir has nothing to route over")
	}
	return all, at
}

// overridden reports whether override_host stands anywhere in the cluster's policies: it may be the child of
// another, and Envoy goes by the type, not by the name.
func (f *file) overridden(c *yaml.Node) bool {
	policy := f.get(c, "load_balancing_policy")
	if len(f.messages(policy, overrideHost)) > 0 {
		return true
	}
	for _, p := range f.list(policy, "policies") {
		if f.text(p, "typed_extension_config", "name") == overrideHostName {
			return true
		}
	}
	return false
}

// pool reads one of them. Without ok it has a fault, which is reported.
func (f *file) pool(name string, c *yaml.Node) (p Pool, ok bool) {
	if name == "" {
		f.fail(c, "a cluster with override_host has no name")
		return p, false
	}
	if kind := f.discovery(c); kind != nil {
		f.fail(kind, "cluster %q has override_host and is not STATIC: this version of weir reads no other", name)
		return p, false
	}
	endpoints := f.endpoints(c)
	if len(endpoints) == 0 {
		f.fail(c, "cluster %q has override_host and no endpoint", name)
		return p, false
	}
	var list []discover.Raw
	for _, e := range endpoints {
		if s := f.find(e, "address", "socket_address"); s != nil {
			list = append(list, f.raw(s))
		} else {
			f.fail(e, "a replica needs a socket_address")
		}
	}
	all, faults := discover.Static(list)
	for _, one := range faults {
		f.report(one.Line, one.Text)
	}
	return Pool{Name: name, Endpoints: all}, len(all) == len(endpoints)
}

// discovery returns where a cluster says how it gets its endpoints, nil when it is STATIC, the first of Envoy's
// enum and its default.
func (f *file) discovery(c *yaml.Node) *yaml.Node {
	if own := f.get(c, "cluster_type"); own != nil {
		return own
	}
	kind := f.get(c, "type")
	if kind == nil || strings.EqualFold(kind.Value, "STATIC") || kind.Value == "0" {
		return nil
	}
	return kind
}

// endpoints returns the endpoint of each lb_endpoint of a cluster.
func (f *file) endpoints(c *yaml.Node) []*yaml.Node {
	var all []*yaml.Node
	for _, locality := range f.list(c, "load_assignment", "endpoints") {
		for _, lb := range f.list(locality, "lb_endpoints") {
			if e := f.get(lb, "endpoint"); e != nil {
				all = append(all, e)
			} else {
				f.fail(lb, "an lb_endpoint without an endpoint: weir reads no endpoint_name")
			}
		}
	}
	return all
}

// raw reads a socket_address. A port that is no number, or has a name, is 0, which is no port.
func (f *file) raw(s *yaml.Node) discover.Raw {
	port, err := strconv.Atoi(f.text(s, "port_value"))
	if err != nil {
		port = 0
	}
	at := s
	if a := f.get(s, "address"); a != nil {
		at = a
	}
	return discover.Raw{Host: f.text(s, "address"), Port: port, Line: at.Line}
}
