package bootstrap

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/pkg/config"
)

// get returns the value of one of Envoy's keys, nil when n is no mapping or lacks it, or has null, which Envoy
// takes for absent. key is in snake_case; the file may have it in camelCase.
func (f *file) get(n *yaml.Node, key string) *yaml.Node {
	var found *yaml.Node
	other := camel(key)
	for _, p := range config.Pairs(n) {
		if p.Key.Value != key && p.Key.Value != other {
			continue
		}
		if found != nil {
			f.fail(p.Key, "%s stands twice", p.Key.Value)
		}
		found = p.Value
	}
	if found != nil && found.ShortTag() == "!!null" {
		return nil
	}
	return found
}

// find is get for each of the keys in turn.
func (f *file) find(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		n = f.get(n, key)
	}
	return n
}

// text returns the single value that find finds, empty for none.
func (f *file) text(n *yaml.Node, keys ...string) string {
	if n = f.find(n, keys...); n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// list returns the elements of the list that find finds.
func (f *file) list(n *yaml.Node, keys ...string) []*yaml.Node {
	if n = f.find(n, keys...); n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	all := make([]*yaml.Node, len(n.Content))
	for i, one := range n.Content {
		all[i] = config.Resolve(one)
	}
	return all
}

// camel turns load_assignment into loadAssignment, as protobuf names fields in JSON.
func camel(key string) string {
	var b strings.Builder
	for i, part := range strings.Split(key, "_") {
		if i > 0 {
			part = strings.ToUpper(part[:1]) + part[1:]
		}
		b.WriteString(part)
	}
	return b.String()
}

// messages returns every message of one of the types under n, however deep: the body of an Any with that
// "@type", or the value of a TypedStruct with that type_url. Each node is looked at once, so that neither
// aliases within aliases nor an anchor inside itself cost more than the file is long.
func (f *file) messages(n *yaml.Node, types ...string) []*yaml.Node {
	var found []*yaml.Node
	seen := map[*yaml.Node]bool{}
	var walk func(*yaml.Node)
	walk = func(n *yaml.Node) {
		n = config.Resolve(n)
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		for _, t := range types {
			if n.Kind == yaml.MappingNode && isType(f.text(n, "@type"), t) {
				found = append(found, n)
			} else if n.Kind == yaml.MappingNode && isType(f.text(n, "type_url"), t) {
				if v := f.get(n, "value"); v != nil {
					found = append(found, v)
				}
			}
		}
		for _, one := range n.Content {
			walk(one)
		}
	}
	walk(n)
	return found
}

// isType reports whether a type URL names the message: type.googleapis.com/NAME.
func isType(url, name string) bool {
	return url[strings.LastIndexByte(url, '/')+1:] == name
}
