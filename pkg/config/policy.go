// Package config is the policy: what an operator tells weir, as one struct that the stages make up. Each stage
// owns its own part, with defaults and Validate; this package reads them, strictly and all at once.
//
//	defaults first > every key read > what was read validated > every fault, with its line and key path
//
// Nothing is repaired or skipped in silence: an unknown key, a key without a value, a value of another type
// and a duration without a unit are faults, so that a policy means what its author reads in it.
package config

import (
	"fmt"
	"net"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/pkg/extproc"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
)

// Policy is everything an operator may set. It stands under node.metadata.weir of Envoy's bootstrap, where
// Envoy carries and ignores it, or in a file of its own, a weir.yaml.
type Policy struct {
	Route   route.Config   `yaml:",inline"`
	Edge    extproc.Config `yaml:",inline"`
	Replica pool.Config    `yaml:"replica"`
	// Admin is the host:port of weir's own HTTP listener: metrics, health and debug pages. They show load and
	// names, so that the default is reached from this machine only.
	Admin string `yaml:"admin"`
	// ExtProcCluster names the Envoy cluster that is weir. Needed only where the listeners' ext_proc filters
	// use several.
	ExtProcCluster string `yaml:"ext_proc_cluster"`
}

// Default returns the policy of an operator who sets nothing: Envoy's usual admin port is 9901, weir's the next.
func Default() Policy {
	replica, _ := pool.Default(pool.DefaultProfile)
	return Policy{Route: route.Default(), Edge: extproc.Default(), Replica: replica, Admin: "127.0.0.1:9902"}
}

// Read decodes the policy at n, a part of file; nil is a policy without any key. What is not given has its
// default, and under replica that of the given profile. The error joins every fault in the order of the file,
// each as file:line: key path: what is wrong.
func Read(n *yaml.Node, file string) (Policy, error) {
	p := Default()
	if n == nil {
		return p, nil
	}
	r := newReader(file)
	r.decode(n, &p, &p)
	if err := r.err(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

// decode reads n into the struct at into, which is or holds the policy p, and validates that.
func (r *reader) decode(n *yaml.Node, into any, p *Policy) {
	if replica, ok := pool.Default(profile(n)); ok {
		p.Replica = replica
	}
	r.read(n, n.Line, "", reflect.ValueOf(into).Elem())
	r.check("", p.Route.Validate())
	r.check("", p.Edge.Validate())
	r.check("replica.", p.Replica.Validate())
	r.check("", p.validateAdmin())
}

// profile returns the text at replica.profile, empty for none: its constants are the defaults under replica.
func profile(n *yaml.Node) string {
	for _, p := range Pairs(n) {
		if p.Key.Value != "replica" {
			continue
		}
		for _, q := range Pairs(p.Value) {
			if q.Key.Value == "profile" {
				return q.Value.Value
			}
		}
	}
	return ""
}

func (p Policy) validateAdmin() error {
	host, port, err := net.SplitHostPort(p.Admin)
	n, errPort := strconv.Atoi(port)
	if err != nil || errPort != nil || host == "" || strings.Contains(host, "/") || n < 1 || n > 65535 {
		return fmt.Errorf("admin: %q is not host:port, such as 127.0.0.1:9902", p.Admin)
	}
	return nil
}

// check reports the faults that a Validate found, each text of which begins with its key and a colon. It
// passes over those of values that could not be read, which are reported already. A key that is not given is reported at
// the nearest path above it that the file has: a name may hold a dot, so only the file tells which.
func (r *reader) check(prefix string, err error) {
	for _, one := range Faults(err) {
		key, text, _ := strings.Cut(one.Error(), ": ")
		path := prefix + key
		at := path
		line, given := r.line[at]
		for !given {
			at = parent(at)
			line, given = r.line[at]
		}
		if r.unread[at] {
			continue
		}
		if at != path {
			text += " (not given)"
		}
		r.report(line, path, text)
	}
}

// parent is the key path of what the value at path stands in: a.b[1] is in a.b, that in a, and that in "".
func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}
