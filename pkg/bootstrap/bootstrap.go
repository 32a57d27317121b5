// Package bootstrap reads Envoy's bootstrap file, the one file that Envoy and weir share, for what concerns weir:
//
//	node.metadata.weir                          the policy (package config); missing or empty: every default
//	the cluster that ext_proc filters call      where weir listens: the cluster's own endpoint
//	the clusters with an override_host policy   the pools, each by the name of its cluster, and their replicas
//
// The file is read as a tree of nodes with their lines, never as Envoy's messages: a filter, an extension or a
// whole type that weir does not know changes nothing. YAML and JSON, snake_case and camelCase, anchors, aliases
// and merge keys are read, merge keys for weir's own part only, as Envoy refuses them in its messages. A key
// that weir reads and that stands twice is a fault, where Envoy takes the last.
//
// The policy may stand in a file of its own instead, a weir.yaml; without any bootstrap file that also says where
// weir listens and what its pools are.
//
// Load takes what weir serve needs, and refuses what it cannot run with. Reload reads the same anew, for a weir
// that runs. Check, behind weir check, also judges what Envoy will do with the requests that weir holds and picks
// for: an ordered list of rules over the same tree.
package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/pkg/config"
	"github.com/weirproxy/weir/pkg/extproc"
)

// Bootstrap is what weir takes from the file.
type Bootstrap struct {
	Policy config.Policy
	Listen Address
	Pools  []Pool // at least one, in the order of the file
	// Timers are those of the ext_proc filters that call weir, as far as they can be read, by Envoy's defaults of 200 ms
	// and none. Routes cannot override them.
	Timers []extproc.Timer
	// Errors are what Rules have against the file for the newest Envoy, of severity Error: weir runs, and requests fail
	// or go elsewhere.
	Errors []Finding
}

// Address is where weir listens, as net.Listen takes it. Network is unix, with the path of a socket, or tcp,
// with ip:port. A relative path starts in the working directory, weir's and Envoy's alike.
type Address struct {
	Network, Address string
}

// Pool is an Envoy cluster over which weir routes.
type Pool struct {
	Name      string
	Endpoints []string // ip:port as discover.Endpoint formats them; at least one, each once
}

// Load reads the files. The error joins every fault in them, the policy's first, otherwise in the order of the
// file, each as file:line: text.
func Load(f Files) (*Bootstrap, error) {
	in, err := f.read()
	if err != nil {
		return nil, err
	}
	r, err := in.load()
	if err != nil {
		return nil, err
	}
	return &r.Bootstrap, nil
}

// load is parse, and a look at the rules.
func (in input) load() (*reading, error) {
	r, err := in.parse()
	if err != nil {
		return nil, err
	}
	for _, one := range in.check(Newest) {
		if one.Severity == Error {
			r.Errors = append(r.Errors, one)
		}
	}
	return r, nil
}

func (in input) parse() (*reading, error) {
	if in.Bootstrap == "" {
		return in.alone()
	}
	r := &reading{}
	f := &file{name: in.Bootstrap}
	root, broken := tree(in.Bootstrap, in.envoy)
	var wrong error
	r.policy, r.Policy, wrong = in.policyOf(f, root)
	if broken != nil {
		return nil, errors.Join(wrong, broken)
	}
	clusters := f.clusters(root)
	r.Listen, r.listen = f.listen(root, r.policy, clusters)
	r.Pools, r.pools = f.pools(root, clusters)
	r.Timers = f.timers(root, r.policy)
	r.all = f.place(f.find(root, "static_resources", "clusters"))
	own := f.err()
	if r.policy.file != f {
		wrong = errors.Join(wrong, r.policy.err())
	}
	if err := errors.Join(wrong, own); err != nil {
		return nil, err
	}
	return r, nil
}

// tree reads a text as YAML, of which JSON is a part. Without one there is an error.
func tree(name string, text []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Load(text, &doc); err != nil {
		return nil, syntax(name, err)
	}
	if doc.Kind == yaml.DocumentNode && len(doc.Content) > 0 {
		return doc.Content[0], nil
	}
	return &doc, nil
}

// syntax is the error for a text that is no YAML, with the line where the library gives one.
func syntax(name string, err error) error {
	var at *yaml.LoadError
	if !errors.As(err, &at) {
		return config.Fault{File: name, Text: err.Error()}
	}
	return config.Fault{File: name, Line: at.Mark.Line, Text: at.Message}
}

// file collects the faults of one file.
type file struct {
	name   string
	faults []fault
}

type fault struct {
	line int
	text string
}

func (f *file) fail(n *yaml.Node, format string, args ...any) {
	f.report(n.Line, fmt.Sprintf(format, args...))
}

// place is where a node stands; nil: the file as a whole.
func (f *file) place(n *yaml.Node) place {
	if n == nil {
		return place{file: f.name}
	}
	return place{f.name, n.Line}
}

func (f *file) report(line int, text string) {
	f.faults = append(f.faults, fault{line, text})
}

// err joins the faults in the order of the file, each once: a part that two readers want is read twice.
func (f *file) err() error {
	slices.SortStableFunc(f.faults, func(a, b fault) int { return cmp.Compare(a.line, b.line) })
	var errs []error
	seen := map[fault]bool{}
	for _, one := range f.faults {
		if !seen[one] {
			errs = append(errs, config.Fault{File: f.name, Line: one.line, Text: one.text})
		}
		seen[one] = true
	}
	return errors.Join(errs...)
}
