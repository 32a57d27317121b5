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
// Load takes what weir serve needs, and refuses what it cannot run with. Check, behind weir check, also judges
// what Envoy will do with the requests that weir holds and picks for: an ordered list of rules over the same tree.
package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/pkg/config"
)

// Bootstrap is what weir takes from the file.
type Bootstrap struct {
	Policy config.Policy
	Listen Address
	Pools  []Pool // at least one, in the order of the file
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

// Load reads the file. The error joins every fault in it, the policy's first, otherwise in the order of the
// file, each as file:line: text.
func Load(name string) (*Bootstrap, error) {
	text, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return parse(name, text)
}

// readFile reads a regular file: a pipe would keep weir waiting for its other end.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	return os.ReadFile(name)
}

func parse(name string, text []byte) (*Bootstrap, error) {
	root, err := tree(name, text)
	if err != nil {
		return nil, err
	}
	f := &file{name: name}
	b := &Bootstrap{}
	var policy error
	b.Policy, policy = config.Read(f.find(root, "node", "metadata", "weir"), name)
	clusters := f.clusters(root)
	b.Listen = f.listen(root, clusters)
	b.Pools = f.pools(root, clusters)
	if err := errors.Join(policy, f.err()); err != nil {
		return nil, err
	}
	return b, nil
}

// tree reads a text as YAML, of which JSON is a part.
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
	switch {
	case !errors.As(err, &at):
		return fmt.Errorf("%s: %w", name, err)
	case at.Mark.Line == 0:
		return fmt.Errorf("%s: %s", name, at.Message)
	}
	return fmt.Errorf("%s:%d: %s", name, at.Mark.Line, at.Message)
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
			errs = append(errs, fmt.Errorf("%s:%d: %s", f.name, one.line, one.text))
		}
		seen[one] = true
	}
	return errors.Join(errs...)
}
