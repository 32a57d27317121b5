package config

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// Pair is one key of a mapping and its value. Neither is an alias.
type Pair struct {
	Key, Value *yaml.Node
}

// Resolve follows an alias to what its anchor names.
func Resolve(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// Pairs returns the keys of a mapping in the order of the file, those of its merge keys (<<) after its own. A
// key that the mapping itself has hides a merged one; a key that stands twice in one mapping is returned
// twice, as it is the reader's to refuse. A node that is no mapping has none.
func Pairs(n *yaml.Node) []Pair {
	return pairs(nil, Resolve(n), map[*yaml.Node]bool{})
}

// pairs appends the keys of n that all does not have yet. seen are the mappings whose keys it has: an anchor
// may name what it stands in, and merges within merges would double at each level.
func pairs(all []Pair, n *yaml.Node, seen map[*yaml.Node]bool) []Pair {
	if n == nil || n.Kind != yaml.MappingNode || seen[n] {
		return all
	}
	seen[n] = true
	outer := len(all)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := Resolve(n.Content[i]), Resolve(n.Content[i+1])
		hidden := func(p Pair) bool { return p.Key.Value == key.Value }
		switch {
		case key.ShortTag() == "!!merge" && mergeable(value):
			merges = append(merges, value)
		case !slices.ContainsFunc(all[:outer], hidden):
			all = append(all, Pair{key, value})
		}
	}
	for _, m := range merges {
		if m.Kind == yaml.MappingNode {
			all = pairs(all, m, seen)
			continue
		}
		for _, one := range m.Content {
			all = pairs(all, Resolve(one), seen)
		}
	}
	return all
}

// mergeable reports whether n is what a merge key may have: a mapping, or a list of mappings.
func mergeable(n *yaml.Node) bool {
	if n.Kind != yaml.SequenceNode {
		return n.Kind == yaml.MappingNode
	}
	return !slices.ContainsFunc(n.Content, func(one *yaml.Node) bool { return Resolve(one).Kind != yaml.MappingNode })
}
