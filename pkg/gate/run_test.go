package gate

import (
	"flag"
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

// runModel plays events random events against the gate that build makes, and returns the first thing it did wrong.
func runModel(seed uint64, events int, build gateFunc) (*model, error) {
	rng := rand.New(rand.NewPCG(seed, 77))
	m := &model{rng: rng, now: epoch, most: 1 + rng.IntN(30), long: time.Second << rng.IntN(7)}
	m.bulk = [][]bool{{false, true}, {false, false, true}, {false, true, false, true}}[seed%3]
	m.pool = newPool(1+rng.IntN(5), 2+rng.IntN(6))
	m.gate = build(m.bulk, m.most, len(m.pool.Replicas), m.best, m.charge)
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
	var total [Left + 1]int
	for seed := *modelSeed; seed < *modelSeed+uint64(*modelEvents/perRun); seed++ {
		m, err := runModel(seed, perRun, realGate)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for s, n := range m.count {
			total[s] += n
		}
	}
	for s := Admitted; s <= Left; s++ {
		if total[s] < *modelEvents/500 {
			t.Errorf("only %d tickets of %d events ended in state %d: the events are too tame", total[s], *modelEvents, s)
		}
	}
	t.Logf("tickets by state: %v", total)
}

// wrong is a gate with one fault.
type wrong struct {
	*Gate
	early bool // lets go of the last ticket first
	late  bool // forgets when to come again
	loses bool // forgets those who leave
}

func (w wrong) Release(now time.Time) *Ticket {
	if w.early {
		w.pass++
		w.next = time.Time{}
		for class := range slices.Backward(w.queues) {
			if t := w.releaseClass(now, class); t != nil {
				w.next = now
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

func (w wrong) Leave(t *Ticket) bool {
	if w.loses && t.state == Held {
		t.state = Left
		return true
	}
	return w.Gate.Leave(t)
}

// The controls: a model that passes a wrong gate proves nothing.
func TestModelSeesWrongGates(t *testing.T) {
	for name, build := range map[string]gateFunc{
		"bulk is like any other": func(bulk []bool, most, replicas int, best bestFunc, charge chargeFunc) gated {
			return New(make([]bool, len(bulk)), most, replicas, best, charge)
		},
		"the knee is ignored": func(bulk []bool, most, replicas int, best bestFunc, charge chargeFunc) gated {
			return New(bulk, most, replicas, func(now time.Time, t *Ticket) (*pool.Replica, pool.View) {
				r, v := best(now, t)
				v.Wait, v.KV, v.Free = 0, 0, true
				return r, v
			}, charge)
		},
		"impatient: any replica below its knee will do": func(bulk []bool, most, replicas int, best bestFunc, charge chargeFunc) gated {
			return New(bulk, most, replicas, func(now time.Time, t *Ticket) (*pool.Replica, pool.View) {
				r, v := best(now, t)
				if v.Below() {
					return r, v
				}
				w := *t
				w.Owner = &wish{extra: make([]float64, len(t.Owner.(*wish).extra))}
				return best(now, &w)
			}, charge)
		},
		"room for one more": func(bulk []bool, most, replicas int, best bestFunc, charge chargeFunc) gated {
			return New(bulk, most+1, replicas, best, charge)
		},
		"bulk first": func(bulk []bool, most, replicas int, best bestFunc, charge chargeFunc) gated {
			return wrong{Gate: New(bulk, most, replicas, best, charge), early: true}
		},
		"comes late": func(bulk []bool, most, replicas int, best bestFunc, charge chargeFunc) gated {
			return wrong{Gate: New(bulk, most, replicas, best, charge), late: true}
		},
		"keeps the place of those who left": func(bulk []bool, most, replicas int, best bestFunc, charge chargeFunc) gated {
			return wrong{Gate: New(bulk, most, replicas, best, charge), loses: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed < 10; seed++ {
				if _, err := runModel(seed, 3000, build); err != nil {
					t.Log(err)
					return
				}
			}
			t.Error("the model passes it")
		})
	}
}
