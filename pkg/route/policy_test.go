package route

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/classify"
)

// classes are the default with these names, in this order; bulk ones begin with b.
func classes(names ...string) Config {
	cfg := Default()
	cfg.Classes = nil
	for _, n := range names {
		c := classify.Class{Name: n, Deadline: 30 * time.Second, Bulk: n[0] == 'b'}
		c.SetDefaults()
		cfg.Classes = append(cfg.Classes, c)
	}
	return cfg
}

func of(class string, seed int) *Request {
	q := ask(seed, 10)
	q.Class.HeaderClass = class
	return q
}

// A class that a new policy does not name takes nobody, keeps its place for those that it holds, and is gone when it holds
// nobody; one that stays keeps its queue wherever it stands.
func TestConfigureDrainsClasses(t *testing.T) {
	r := newRouter(1, classes("a", "middle", "last"))
	leases := fill(r, at(0))
	held := map[string]*Decision{}
	for i, class := range []string{"last", "middle", "a"} {
		if held[class] = r.Route(at(0), of(class, i)); held[class].State != Held || held[class].Class != class {
			t.Fatalf("%s: state %v, class %s", class, held[class].State, held[class].Class)
		}
	}
	r.Configure(at(1), classes("a", "new", "last"))
	late := r.Route(at(1), of("middle", 9)) // no class any more: the default
	fresh := r.Route(at(1), of("new", 10))
	if late.Class != "a" || fresh.Class != "new" || late.State != Held || fresh.State != Held {
		t.Errorf("after the swap: %s %v, %s %v", late.Class, late.State, fresh.Class, fresh.State)
	}
	var names []string
	for _, c := range r.GateStats(at(1), 0).Classes {
		if names = append(names, c.Class); c.Draining != (c.Class == "middle") || c.Held == 0 {
			t.Errorf("class %+v", c)
		}
	}
	if want := []string{"a", "middle", "new", "last"}; !slices.Equal(names, want) {
		t.Errorf("classes %v, want %v", names, want)
	}
	leases[0].Release(at(2), true)
	var order []*Decision
	for d, _, _ := r.releaseOne(at(2)); d != nil; d, _, _ = r.releaseOne(at(2)) {
		order = append(order, d)
	}
	want := []*Decision{held["a"], late, held["middle"], fresh, held["last"]}
	if !slices.Equal(order, want) {
		t.Errorf("%d go in another order than class by class", len(order))
	}
	for _, d := range order {
		r.Done(at(3), d, Answered)
	}
	r.Configure(at(4), classes("last", "a"))
	if got := r.GateStats(at(4), 0).Classes; len(got) != 2 || got[0].Class != "last" || got[0].Draining {
		t.Errorf("classes %+v", got)
	}
	idle(t, r, at(4))
}

// Those who are held are let go at the next look once nobody has to wait any more, and refused at their own deadline
// whatever the new policy's is.
func TestConfigureOfThoseHeld(t *testing.T) {
	r := newRouter(1, Default())
	fill(r, at(0))
	d, b := r.Route(at(0), ask(1, 10)), r.Route(at(0), of("bulk", 2))
	short := Default()
	short.Classes[0].Deadline = time.Second
	r.Configure(at(0), short)
	if n := r.Release(at(5)); n != 0 || d.State != Held {
		t.Errorf("%d released by a shorter deadline of others", n)
	}
	if late := r.Route(at(5), ask(3, 10)); late.ticket.Deadline.Sub(at(5)) > 2*time.Second {
		t.Errorf("the new deadline is in %v", late.ticket.Deadline.Sub(at(5)))
	}
	none := Default()
	none.Queue = NoQueue
	r.Configure(at(6), none)
	if n := r.Release(at(6)); n != 3 || d.State != Picked || b.State != Picked {
		t.Errorf("%d released when nobody waits, states %v, %v", n, d.State, b.State)
	}
}

// Requests that come while the policy is swapped have one policy each, and a class of it.
func TestConfigureUnderLoad(t *testing.T) {
	r := newRouter(2, classes("a", "b"))
	cfgs := []Config{classes("a", "b"), classes("b2", "a", "c"), classes("c"), classes("x", "y", "a")}
	cfgs[1].Classes[0].Bulk = false
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 300 {
				d := r.Route(at(1), of([]string{"a", "b", "c", "y"}[i%4], g*1000+i))
				found := false
				for _, c := range d.policy.Classes {
					found = found || c.Name == d.Class
				}
				if !found {
					t.Errorf("class %s of another policy", d.Class)
				}
				r.Release(at(1))
				r.Done(at(2), d, Answered)
			}
		})
	}
	for i := range 200 {
		r.Configure(at(1), cfgs[i%len(cfgs)])
	}
	wg.Wait()
	r.Release(at(2))
	idle(t, r, at(3))
}
