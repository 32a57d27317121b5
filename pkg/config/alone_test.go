package config

import (
	"reflect"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

func TestAlone(t *testing.T) {
	a, err := ReadAlone(parse(t, `
listen: unix:/run/weir.sock
max_hold: 1m
pools:
- {name: a, endpoints: [10.0.0.1:8000, "[2001:DB8::1]:8000"]}
- {name: b, endpoints: [10.0.0.1:8000]}
`), "weir.yaml")
	want := Alone{
		Policy: Default(), Listen: "unix:/run/weir.sock",
		Pools: []Pool{{"a", []string{"10.0.0.1:8000", "[2001:db8::1]:8000"}}, {"b", []string{"10.0.0.1:8000"}}},
	}
	want.Route.MaxHold = time.Minute
	if err != nil || !reflect.DeepEqual(a, want) {
		t.Errorf("got %+v, %v", a, err)
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string][2]string{
		"unix:weir.sock": {"unix", "weir.sock"}, "unix:@weir": {"unix", "@weir"},
		"127.0.0.1:9000": {"tcp", "127.0.0.1:9000"}, "[::1]:9000": {"tcp", "[::1]:9000"},
		"0.0.0.0:9000": {"tcp", "0.0.0.0:9000"}, "[::]:9000": {"tcp", "[::]:9000"},
	} {
		network, address, err := (&Alone{Listen: text}).Address()
		if err != nil || network != want[0] || address != want[1] {
			t.Errorf("%s: %s %s, %v", text, network, address, err)
		}
	}
}

func TestBeside(t *testing.T) {
	p, err := ReadBeside(parse(t, "max_hold: 1m\next_proc_cluster: weir\n"), "weir.yaml")
	want := Default()
	want.Route.MaxHold, want.ExtProcCluster = time.Minute, "weir"
	if err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v, %v", p, err)
	}
}

// TestLiveAndChanged changes each key alone: it is named, and it is live or it is not.
func TestLiveAndChanged(t *testing.T) {
	live := map[string]string{
		"balance_on": "requests", "affinity": "none", "queue": "fifo", "rule": "none", "max_hold": "1m",
		"classes": "[{name: a, deadline: 1s}]", "flow": "header:x", "class_from": "metadata:jwt:class", "ext_proc_cluster": "weir",
		"tools_position": "{m: first}",
	}
	fixed := map[string]string{"admin": "127.0.0.1:1", "body_limit": "1", "body_memory": "67108864", "replica": "{seats: 1}"}
	keys := fields(map[string]reflect.Value{}, reflect.ValueOf(&Policy{}).Elem())
	if len(keys) != len(live)+len(fixed) {
		t.Errorf("of %d keys %d are tested", len(keys), len(live)+len(fixed))
	}
	for _, one := range []struct {
		keys map[string]string
		live bool
	}{{live, true}, {fixed, false}} {
		for key, value := range one.keys {
			old, next := Default(), policyOf(t, key+": "+value)
			if got := Changed(old, next); len(got) != 1 || got[0] != key {
				t.Errorf("%s: changed %v", key, got)
			}
			if got := Changed(old.Live(next), next); (len(got) == 0) != one.live {
				t.Errorf("%s: not live are %v", key, got)
			}
			if got := Changed(old.Live(next), old); (len(got) > 0) != one.live {
				t.Errorf("%s: live are %v", key, got)
			}
		}
	}
	if got := Changed(Default(), Default()); got != nil {
		t.Errorf("of the same %v", got)
	}
}

func policyOf(t *testing.T, text string) Policy {
	t.Helper()
	p, err := Read(parse(t, text), "f")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// FuzzAlone holds that what ReadAlone takes is complete, and that ReadBeside takes nothing that it does not.
func FuzzAlone(f *testing.F) {
	f.Add("listen: unix:a\npools: [{name: a, endpoints: [10.0.0.1:8000]}]\n")
	f.Add("listen: &l 127.0.0.1:1\npools: &p [*p, {name: *l}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		var doc yaml.Node
		if yaml.Load([]byte(text), &doc) != nil || len(doc.Content) == 0 {
			return
		}
		if a, err := ReadAlone(doc.Content[0], "f"); err == nil {
			if network, address, err := a.Address(); err != nil || network == "" || address == "" || len(a.Pools) == 0 {
				t.Fatalf("%q: %+v, %v", text, a, err)
			}
			for _, p := range a.Pools {
				if p.Name == "" || len(p.Endpoints) == 0 {
					t.Fatalf("%q: %+v", text, a)
				}
			}
			if _, err := ReadBeside(doc.Content[0], "f"); err == nil {
				t.Fatalf("%q is taken beside a bootstrap file too", text)
			}
		}
	})
}
