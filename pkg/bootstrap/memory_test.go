package bootstrap

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/envoy"
)

// TestBodyMemoryWithoutAFilter has files in which no filter tells the body mode: what the classes may hold is laid beside
// body_memory all the same, and said once, at the key that is to be changed.
func TestBodyMemoryWithoutAFilter(t *testing.T) {
	shipped := edited(t, envoy.Streamed, "max_hold: 300s", "body_memory: 1140850687\n      max_hold: 300s")
	class := "- {name: %s, deadline: 1s, max_held_bytes: %d}\n"
	in := func(x texts, f Finding) string {
		if filepath.Base(f.File) == "envoy.yaml" {
			return x.envoy
		}
		return x.weir
	}
	for name, c := range map[string]struct {
		texts
		at   string // of the line; empty: nothing is said
		seen bool   // the mode is
	}{
		"the defaults":                  {texts{"", alone}, "", false},
		"enough":                        {texts{"", alone + "body_memory: 1140850688\n"}, "", false},
		"a byte less":                   {texts{"", alone + "body_memory: 1140850687\n"}, "body_memory:", false},
		"one class more":                {texts{"", alone + "classes:\n" + fmt.Sprintf(class, "a", 512<<20) + fmt.Sprintf(class, "b", 512<<20) + fmt.Sprintf(class, "c", 448<<20+1)}, "classes:", false},
		"as much as there is room for":  {texts{"", alone + "classes:\n" + fmt.Sprintf(class, "a", 512<<20) + fmt.Sprintf(class, "b", 512<<20) + fmt.Sprintf(class, "c", 448<<20)}, "", false},
		"larger bodies":                 {texts{"", alone + "max_hold: 1m\nbody_limit: 268435457\n"}, "body_limit:", false},
		"a filter that is not judged":   {texts{bare, "body_memory: 1140850687\n"}, "body_memory:", false},
		"a fault comes first":           {texts{"", alone + "max_hold: 0s\nbody_memory: 1140850687\n"}, "", false},
		"a filter, in a bootstrap file": {texts{shipped, ""}, "http.ext_proc.v3.ExternalProcessor", true},
	} {
		f, _ := c.write(t)
		all, err := Check(f, Oldest)
		if err != nil {
			t.Fatal(err)
		}
		all = slices.DeleteFunc(all, func(f Finding) bool { return f.Rule != "body-memory" })
		switch {
		case c.at == "" && len(all) == 0:
		case c.at == "" || len(all) != 1 || all[0].Line != lineOf(t, in(c.texts, all[0]), c.at) || all[0].Severity != Warning:
			t.Errorf("%s: got %v, want one at %q", name, all, c.at)
		case !strings.Contains(all[0].Text, "give at least ") || strings.Contains(all[0].Text, "not seen here") == c.seen:
			t.Errorf("%s: %v", name, all[0])
		}
	}
}
