package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// numbers are the keys of numbers and durations in a struct, with those of replica and of the first class, and the values
// that they have.
func numbers(prefix string, v reflect.Value, all map[string]string) {
	for key, f := range fields(map[string]reflect.Value{}, v) {
		switch {
		case f.Type() == reflect.TypeFor[time.Duration]() || f.Kind() == reflect.Int:
			all[prefix+key] = fmt.Sprint(f.Interface())
		case f.Kind() == reflect.Struct:
			numbers(prefix+key+".", f, all)
		case key == "classes":
			numbers(prefix+"classes[0].", f.Index(0), all)
		}
	}
}

// file is a policy with each key on a line of its own, and the line of each.
func file(values map[string]string) (text string, at map[string]int) {
	at = map[string]int{}
	begin := map[string]string{"classes[0]": "classes:\n- name: a\n", "replica": "replica:\n"}
	for _, path := range slices.Sorted(maps.Keys(values)) {
		in, key := parent(path), path
		if in != "" {
			key = "  " + strings.TrimPrefix(path, in+".")
		}
		text += begin[in]
		delete(begin, in)
		at[path] = 1 + strings.Count(text, "\n")
		text += key + ": " + values[path] + "\n"
	}
	return text, at
}

// TestANumbersFaultStandsOnItsOwnLine has each key of a number or a duration wrong, in a file that has all of them: out of
// bounds, not to be read, on the line below its key, and by an alias of what is wrong elsewhere.
func TestANumbersFaultStandsOnItsOwnLine(t *testing.T) {
	p := Default()
	good := map[string]string{}
	numbers("", reflect.ValueOf(&p).Elem(), good)
	if text, _ := file(good); len(good) < 15 || policyOf(t, text).Replica != p.Replica {
		t.Fatalf("%d keys, of values that are no default:\n%s", len(good), text)
	}
	for path, value := range good {
		least, anchor := "-1", "body_limit"
		if strings.HasSuffix(value, "s") {
			least, anchor = "-1s", "classes[0].deadline"
		}
		for _, bad := range []string{least, "x", "[]", "99999999999999999999", "\n    " + least, "\n    x"} {
			faultAt(t, good, map[string]string{path: bad})
		}
		if anchor < path { // in the file too
			faultAt(t, good, map[string]string{anchor: "&bad " + least, path: "*bad"})
		}
	}
	delete(good, "body_memory")
	faultAt(t, good, map[string]string{"body_limit": "1073741824"})
}

// faultAt puts bad values in the place of good ones, and wants a fault at each.
func faultAt(t *testing.T, good, bad map[string]string) {
	t.Helper()
	values := maps.Clone(good)
	maps.Copy(values, bad)
	text, at := file(values)
	_, err := Read(parse(t, text), "f")
	all := Faults(err)
	if len(all) != len(bad) {
		t.Errorf("%v: got\n%v", bad, err)
	}
	for path := range bad {
		begin := fmt.Sprintf("f:%d: %s: ", at[path], path)
		if !slices.ContainsFunc(all, func(err error) bool { return strings.HasPrefix(err.Error(), begin) }) {
			t.Errorf("%v: got\n%v\nwant %s", bad, err, begin)
		}
	}
}
