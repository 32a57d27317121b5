package gate

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

var (
	modelSeed   = flag.Uint64("gate.seed", 1, "first seed of the gate's model test")
	modelEvents = flag.Int("gate.events", 120_000, "random events of the gate's model test")
)

// kinds are the classes of a run, by turns.
var kinds = [][]Class{
	{{}, {Bulk: true, Share: 0.05}},
	{{}, {Share: 0.2}, {Bulk: true}},
	{{Share: 0.1}, {Bulk: true, Share: 0.3}, {}, {Bulk: true}},
	{{}, {Bulk: true}},
}

// runModel plays events random events against the gate that build makes, and returns the first thing it did wrong.
func runModel(seed uint64, events int, build gateFunc) (*model, error) {
	rng := rand.New(rand.NewPCG(seed, 77))
	classes := slices.Clone(kinds[seed%uint64(len(kinds))])
	most := 1 + rng.IntN(120)
	for i := range classes {
		classes[i].Most, classes[i].Bytes = most, int64(most)*int64(30+rng.IntN(100))
	}
	p := newPool(1+rng.IntN(6), 2+rng.IntN(6))
	long := time.Second << rng.IntN(7)
	for i := range classes {
		classes[i].Deadline = long
	}
	m := &model{rng: rng, oracle: newOracle(classes, p), long: long, gap: []float64{3e7, 3e6}[rng.IntN(2)]}
	if rng.IntN(2) == 0 {
		m.clients = 5 + rng.IntN(200)
	}
	m.oracle.best = m.best
	m.gate = build(classes, p, m.best, m.charge)
	for range events {
		if m.step(); m.err != nil {
			return m, m.err
		}
	}
	for len(m.charged) > 0 {
		m.end()
	}
	for m.gate.Len() > 0 && m.err == nil { // by its own clock alone
		if n := m.gate.Next(); n.After(m.now) {
			m.now = n
		} else if m.pass(); m.gate.Len() > 0 && !m.gate.Next().After(m.now) {
			m.failf("%d held and nothing to come for", m.gate.Len())
		}
		for len(m.charged) > 0 {
			m.end()
		}
	}
	m.conserve()
	return m, m.err
}

func TestGateAgreesWithModel(t *testing.T) {
	const perRun = 3000
	for _, seed := range []uint64{995} { // found a wait for k that a replica with bulk of its own ends earlier
		if _, err := runModel(seed, perRun, realGate); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	var total [Left + 1]int
	seen := map[string]int{}
	for seed := *modelSeed; seed < *modelSeed+uint64(*modelEvents/perRun); seed++ {
		m, err := runModel(seed, perRun, realGate)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for s, n := range m.count {
			total[s] += n
		}
		for rule, n := range m.seen {
			seen[rule] += n
		}
	}
	for s := Admitted; s <= Left; s++ {
		if total[s] < *modelEvents/500 {
			t.Errorf("only %d tickets of %d events ended in state %d: the events are too tame", total[s], *modelEvents, s)
		}
	}
	for rule, rare := range map[string]int{
		"owed": 500, "KV": 500, "k": 500, "tickets": 500, "bytes": 1000, "look-ahead": 500, "flow passed": 500, "flow's rate": 4000,
	} {
		if seen[rule] < *modelEvents/rare {
			t.Errorf("the rule %q made a difference only %d times in %d events: they are too tame", rule, seen[rule], *modelEvents)
		}
	}
	if seen["wanted"] > 0 {
		t.Errorf("bulk could go to a replica that a more urgent ticket waits for, %d times", seen["wanted"])
	}
	t.Logf("tickets by state: %v; rules: %v", total, seen)
}

// wrong is a gate with one fault.
type wrong struct {
	*Gate
	early  bool // lets go of the last class first
	late   bool // forgets when to come again
	loses  bool // forgets those who leave
	oneFor bool // takes all flows for one
}

func (w wrong) Offer(now time.Time, t *Ticket) State {
	if w.oneFor {
		defer func(flow string) { t.Flow = flow }(t.Flow)
		t.Flow = ""
	}
	return w.Gate.Offer(now, t)
}

func (w wrong) Release(now time.Time) *Ticket {
	if w.early {
		w.Gate.next = time.Time{}
		for _, c := range slices.Backward(w.classes) {
			if t := w.releaseClass(now, c, false); t != nil {
				w.Gate.next = now
				return t
			}
		}
		return nil
	}
	return w.Gate.Release(now)
}

func (w wrong) Next() time.Time {
	if n := w.Gate.Next(); !w.late || n.IsZero() {
		return n
	}
	return w.Gate.Next().Add(time.Millisecond)
}

func (w wrong) Leave(now time.Time, t *Ticket) bool {
	if w.loses && t.state == Held {
		t.state = Left
		return true
	}
	return w.Gate.Leave(now, t)
}

// told is a gate that is told other classes than the model.
func told(change func(*Class)) gateFunc {
	return func(classes []Class, p *pool.Pool, best bestFunc, charge chargeFunc) gated {
		classes = slices.Clone(classes)
		for i := range classes {
			change(&classes[i])
		}
		return New(classes, true, p, best, charge)
	}
}

// shown is a gate to which each ticket's best replica looks otherwise.
func shown(change func(*Ticket, *Class, *pool.View)) gateFunc {
	return func(classes []Class, p *pool.Pool, best bestFunc, charge chargeFunc) gated {
		return New(classes, true, p, func(now time.Time, t *Ticket) (*pool.Replica, pool.View) {
			r, v := best(now, t)
			change(t, &classes[t.Class], &v)
			return r, v
		}, charge)
	}
}

func faulty(w wrong) gateFunc {
	return func(classes []Class, p *pool.Pool, best bestFunc, charge chargeFunc) gated {
		w.Gate = New(classes, true, p, best, charge)
		return w
	}
}

// The controls: a model that passes a wrong gate proves nothing.
func TestModelSeesWrongGates(t *testing.T) {
	for name, build := range map[string]gateFunc{
		"bulk is like any other":      told(func(c *Class) { c.Bulk = false }),
		"nobody has a share":          told(func(c *Class) { c.Share = 0 }),
		"room for one more":           told(func(c *Class) { c.Most++ }),
		"a rate of long ago":          told(func(c *Class) { c.Deadline *= 100 }),
		"bytes are not counted":       told(func(c *Class) { c.Bytes = math.MaxInt64 }),
		"the knee is ignored":         shown(func(_ *Ticket, _ *Class, v *pool.View) { v.Wait, v.KV, v.Free = 0, 0, true }),
		"bulk takes any KV":           shown(func(t *Ticket, c *Class, _ *pool.View) { t.Need = 0 }),
		"bulk up to the knee":         shown(func(_ *Ticket, c *Class, v *pool.View) { v.Tau *= map[bool]float64{false: 1, true: 4}[c.Bulk] }),
		"bulk first":                  faulty(wrong{early: true}),
		"comes late":                  faulty(wrong{late: true}),
		"keeps the place of who left": faulty(wrong{loses: true}),
		"flows are first come":        faulty(wrong{oneFor: true}),
		"bulk on any number of replicas": func(classes []Class, p *pool.Pool, best bestFunc, charge chargeFunc) gated {
			return New(classes, true, newPool(len(p.Replicas), 1), best, charge) // in which nobody charges
		},
		"impatient: any replica below its knee will do": func(classes []Class, p *pool.Pool, best bestFunc, charge chargeFunc) gated {
			return New(classes, true, p, func(now time.Time, t *Ticket) (*pool.Replica, pool.View) {
				r, v := best(now, t)
				if v.Below() {
					return r, v
				}
				w := *t
				w.Owner = &wish{extra: make([]float64, len(t.Owner.(*wish).extra))}
				return best(now, &w)
			}, charge)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed < 13; seed++ {
				if _, err := runModel(seed, 3000, build); err != nil {
					t.Log(err)
					return
				}
			}
			t.Error("the model passes it")
		})
	}
}
