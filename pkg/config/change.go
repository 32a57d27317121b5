package config

import (
	"reflect"
	"slices"
)

// Live returns the policy next as far as it can take the place of p while weir runs, and p where it cannot. What
// is live is what is read anew for each request; ext_proc_cluster only helps to find an address.
func (p Policy) Live(next Policy) Policy {
	p.Route = next.Route
	p.Edge.Flow, p.Edge.ClassFrom = next.Edge.Flow, next.Edge.ClassFrom
	p.ExtProcCluster = next.ExtProcCluster
	return p
}

// Changed returns the keys in which two policies differ, in alphabetical order.
func Changed(a, b Policy) (keys []string) {
	before, after := fields(map[string]reflect.Value{}, reflect.ValueOf(&a).Elem()), fields(map[string]reflect.Value{}, reflect.ValueOf(&b).Elem())
	for key, v := range before {
		if !reflect.DeepEqual(v.Interface(), after[key].Interface()) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
