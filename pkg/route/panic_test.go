package route

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/gate"
	"github.com/weirproxy/weir/pkg/pool"
)

// A fault while a request is routed passes on to the caller, who answers for it. It leaves nothing held, charged or
// locked: other requests go on. The gate takes functions, and here they fail.
func TestPanicLeavesNothing(t *testing.T) {
	for name, broken := range map[string]func(r *Router) *gate.Gate{
		"before the charge": func(r *Router) *gate.Gate {
			best := func(now time.Time, t *gate.Ticket) (*pool.Replica, pool.View) {
				r.best(now, t)
				panic("a fault that a test made")
			}
			return gate.New([]gate.Class{{Most: 9, Bytes: 1e9}, {Most: 9, Bytes: 1e9}}, true, r.pool, best, r.charge)
		},
		"after the charge": func(r *Router) *gate.Gate {
			charge := func(now time.Time, t *gate.Ticket) {
				r.charge(now, t)
				panic("a fault that a test made")
			}
			return gate.New([]gate.Class{{Most: 9, Bytes: 1e9}, {Most: 9, Bytes: 1e9}}, true, r.pool, r.best, charge)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRouter(4, Default())
			before := r.Route(at(0), ask(1, 100))
			healthy := r.gate
			r.gate = broken(r)
			func() {
				defer func() {
					if recover() == nil {
						t.Error("no fault came through")
					}
				}()
				r.Route(at(1), ask(2, 3000))
			}()
			if n := sum(leases(r)); n != 1 {
				t.Errorf("%d leases after the fault, want that of the request before it", n)
			}
			r.gate = healthy
			after := r.Route(at(2), ask(3, 100))
			if after.State != Picked {
				t.Errorf("state %v after the fault", after.State)
			}
			r.Done(at(3), before, Answered)
			r.Done(at(3), after, Answered)
			idle(t, r, at(3))
		})
	}
}
