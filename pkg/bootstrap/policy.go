package bootstrap

import (
	"errors"

	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/pkg/config"
)

// part is where the policy stands.
type part struct {
	*file
	node   *yaml.Node // nil: nowhere
	called string     // as messages call the place
}

// policyOf reads the policy that goes with the bootstrap file f of that root, from it or from a file of its own.
// In both it is a fault: one of the two would be ignored.
func (in input) policyOf(f *file, root *yaml.Node) (part, config.Policy, error) {
	own := part{f, f.find(root, "node", "metadata", "weir"), "node.metadata.weir"}
	if in.Policy == "" {
		p, err := config.Read(own.node, f.name)
		return own, p, err
	}
	at := part{file: &file{name: in.Policy}, called: in.Policy}
	var err error
	if at.node, err = tree(in.Policy, in.policy); err != nil {
		return at, config.Default(), err
	}
	p, err := config.ReadBeside(at.node, in.Policy)
	if own.node != nil {
		key := part{file: f, node: f.find(root, "node", "metadata")}.key("weir")
		twice := key.fault("node.metadata.weir: the policy stands in " + at.place(at.node).String() + " too: give it in one of the two")
		err = errors.Join(err, twice)
	}
	return at, p, err
}

// key is where a key of the policy stands, the first of several that does, or else the policy, or the file.
func (p part) key(names ...string) place {
	for _, name := range names {
		for _, one := range config.Pairs(p.node) {
			if one.Key.Value == name {
				return p.place(one.Key)
			}
		}
	}
	return p.place(p.node)
}

// alone reads a weir.yaml without a bootstrap file.
func (in input) alone() (*reading, error) {
	f := &file{name: in.Policy}
	root, err := tree(in.Policy, in.policy)
	if err != nil {
		return nil, err
	}
	a, err := config.ReadAlone(root, in.Policy)
	if err != nil {
		return nil, err
	}
	r := &reading{Bootstrap: Bootstrap{Policy: a.Policy}, policy: part{f, root, in.Policy}, pools: map[string]place{}}
	r.listen, r.all = r.policy.key("listen"), r.policy.key("pools")
	r.Listen.Network, r.Listen.Address, _ = a.Address() // ReadAlone has passed it
	for i, at := range f.list(root, "pools") {
		r.Pools = append(r.Pools, Pool(a.Pools[i]))
		r.pools[a.Pools[i].Name] = f.place(at)
	}
	return r, nil
}
