package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// reader decodes a node tree into structs by their yaml tags. It walks the structs itself and leaves only
// scalars to the library, whose own strict decoding knows no key paths, names Go types to operators, keeps the
// default under a key without a value, and takes 5 for a text and yes for true.
type reader struct {
	file   string
	line   map[string]int  // by key path: where it stands, and not what an alias there names
	unread map[string]bool // by key path: its value could not be read
	faults []fault
}

type fault struct {
	line int
	text string // begins with the key path, if there is one
}

func newReader(file string) *reader {
	return &reader{file: file, line: map[string]int{}, unread: map[string]bool{}}
}

// fail reports that the value at path could not be read.
func (r *reader) fail(path, format string, args ...any) {
	r.unread[path] = true
	r.report(r.line[path], path, fmt.Sprintf(format, args...))
}

func (r *reader) report(line int, path, text string) {
	if path != "" {
		text = path + ": " + text
	}
	r.faults = append(r.faults, fault{line, text})
}

// err returns every fault in the order of the file, each as file:line: key path: text.
func (r *reader) err() error {
	slices.SortStableFunc(r.faults, func(a, b fault) int { return cmp.Compare(a.line, b.line) })
	var errs []error
	for _, f := range r.faults {
		errs = append(errs, Fault{r.file, f.line, f.text})
	}
	return errors.Join(errs...)
}

// read decodes n, which stands at path on a line, into v. What n does not give keeps its value.
func (r *reader) read(n *yaml.Node, line int, path string, v reflect.Value) {
	n = Resolve(n)
	r.line[path] = line
	switch {
	case n.ShortTag() == "!!null":
		r.fail(path, "no value; without the key its default holds")
	case v.Kind() == reflect.Struct:
		r.mapping(n, path, v)
	case v.Kind() == reflect.Slice:
		r.list(n, path, v)
	case v.Kind() == reflect.Map:
		r.named(n, path, v)
	case n.Kind != yaml.ScalarNode:
		r.fail(path, "a %s, want a single value", kind(n))
	default:
		if err := scalar(n, v); err != nil {
			r.fail(path, "%v", err)
		}
	}
}

func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "mapping"
	case yaml.SequenceNode:
		return "list"
	}
	return "single value"
}

func (r *reader) mapping(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		r.fail(path, "a %s, want a mapping", kind(n))
		return
	}
	known := fields(map[string]reflect.Value{}, v)
	seen := map[string]int{}
	for _, p := range Pairs(n) {
		key := p.Key.Value
		at := strings.TrimPrefix(path+"."+key, ".")
		field, ok := known[key]
		switch {
		case p.Key.Kind != yaml.ScalarNode || !ok:
			r.report(p.Key.Line, path, fmt.Sprintf("unknown key %q: the keys are %s", key, names(known)))
		case seen[key] != 0:
			r.report(p.Key.Line, at, fmt.Sprintf("stands twice, first on line %d", seen[key]))
		default:
			seen[key] = p.Key.Line
			r.read(p.Value, p.Key.Line, at, field)
		}
	}
}

// named reads a mapping whose keys are names of the operator's own.
func (r *reader) named(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		r.fail(path, "a %s, want a mapping", kind(n))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	seen := map[string]int{}
	for _, p := range Pairs(n) {
		name := p.Key.Value
		at := path + "." + name
		switch err := scalar(p.Key, reflect.New(v.Type().Key()).Elem()); {
		case p.Key.Kind != yaml.ScalarNode || err != nil:
			r.report(p.Key.Line, path, fmt.Sprintf("the name %q is not a text: put it in quotes", name))
			continue
		case strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || !unicode.IsPrint(c) }):
			r.report(p.Key.Line, path, fmt.Sprintf("the name %q has a space or what cannot be printed", name))
			continue
		}
		if seen[name] != 0 {
			r.report(p.Key.Line, at, fmt.Sprintf("stands twice, first on line %d", seen[name]))
			continue
		}
		seen[name] = p.Key.Line
		one := reflect.New(v.Type().Elem()).Elem()
		r.read(p.Value, p.Key.Line, at, one)
		v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), one)
	}
}

func (r *reader) list(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		r.fail(path, "a %s, want a list", kind(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, one := range n.Content {
		if d, ok := v.Index(i).Addr().Interface().(interface{ SetDefaults() }); ok {
			d.SetDefaults()
		}
		r.read(one, one.Line, path+"["+strconv.Itoa(i)+"]", v.Index(i))
	}
}

// fields adds the settable fields of a struct to known, by key; those of inlined structs are its own.
func fields(known map[string]reflect.Value, v reflect.Value) map[string]reflect.Value {
	for i := range v.NumField() {
		key, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if option == "inline" {
			fields(known, v.Field(i))
		} else {
			known[key] = v.Field(i)
		}
	}
	return known
}

func names(known map[string]reflect.Value) string {
	var all []string
	for key := range known {
		all = append(all, key)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// scalar decodes a single value into a text, a whole number, true or false, or a duration.
func scalar(n *yaml.Node, v reflect.Value) error {
	tag := n.ShortTag()
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(n.Value)
		if err != nil || strings.TrimLeft(n.Value, "+-") == "0" {
			return fmt.Errorf("%q is not a duration with a unit, such as 30s, 5m or 27.8us", n.Value)
		}
		v.SetInt(int64(d))
	case v.Kind() == reflect.Int:
		if (tag != "!!int" && tag != "!!float") || n.Load(v.Addr().Interface()) != nil {
			return fmt.Errorf("%q is not a whole number", n.Value)
		}
	case v.Kind() == reflect.Bool:
		if tag != "!!bool" || n.Load(v.Addr().Interface()) != nil {
			return fmt.Errorf("%q is not true or false", n.Value)
		}
	case v.Kind() == reflect.String:
		if tag != "!!str" {
			return fmt.Errorf("%q is not a text: put it in quotes", n.Value)
		}
		if n.Value == "" {
			return errors.New("empty; without the key its default holds")
		}
		v.SetString(n.Value)
	default:
		return fmt.Errorf("weir cannot read a %s", v.Type())
	}
	return nil
}
