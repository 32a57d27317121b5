package policy

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
)

func TestRoundRobin(t *testing.T) {
	r := mustNew(t, "round-robin", env(t, 3))
	for i := range 12 {
		if slot := send(t, r, call(1, 100)); slot != (i+1)%3 {
			t.Errorf("request %d to %d", i, slot)
		}
	}
}

// TestSpread: n requests that never end go to n replicas by these, and to all evenly by chance.
func TestSpread(t *testing.T) {
	for name, most := range map[string]int{"least-request": 10, "least-pending": 10, "two-choices": 13, "random": 25} {
		r, counts := mustNew(t, name, env(t, 20)), make([]int, 20)
		for range 200 {
			counts[send(t, r, call(1, 10))]++
		}
		if high, low := slices.Max(counts), slices.Min(counts); high > most || low == 0 || most > 10 && high <= 10 {
			t.Errorf("%s: %v", name, counts)
		}
	}
}

// TestPrefixHash: prompts of one beginning go to one replica, others elsewhere; the bound holds where there is one.
func TestPrefixHash(t *testing.T) {
	r, counts := mustNew(t, "prefix-hash", env(t, 8)), make([]int, 8)
	for text := range 800 {
		home := send(t, r, call(text+1, 4000))
		counts[home]++
		if again := send(t, r, call(text+1, 9000)); again != home {
			t.Errorf("text %d: %d, then %d", text, home, again)
		}
	}
	if slices.Min(counts) < 60 || slices.Max(counts) > 140 {
		t.Errorf("homes %v", counts)
	}
}

// TestBoundedLoad holds its bound from the first request on, when a replica's share is less than one, and the home is full first.
func TestBoundedLoad(t *testing.T) {
	for _, n := range []int{8, 300} {
		l := newLedger(env(t, n))
		b := &immediate{l, &boundedLoad{l}}
		home := -1
		for i := range 200 {
			slot := send(t, b, call(1, 4000))
			if home < 0 {
				home = slot
			}
			if bound := int(math.Ceil(1.25 * float64(i+1) / float64(n))); slices.Max(l.live) > bound {
				t.Fatalf("%d replicas, after %d requests: %v, bound %d", n, i+1, l.live, bound)
			}
		}
		if l.live[home] < slices.Max(l.live) {
			t.Errorf("%d replicas: home %d of %v", n, home, l.live)
		}
	}
}

// TestSticky stays at 0.8 of the prompt and 2 s of prefill more than the coldest, and leaves beyond either.
func TestSticky(t *testing.T) {
	const twoSeconds = 71_942 // tokens of prefill, at 27.8 us
	for _, c := range []struct {
		shared, ahead int // tokens of the new prompt that are warm; tokens pending there
		stays         bool
	}{
		{8000, 0, true}, {8000, twoSeconds - 100, true}, {8000, twoSeconds + 100, false}, {7900, 0, false},
	} {
		l := newLedger(env(t, 4))
		r := &immediate{l, &sticky{l}}
		first := call(1, 10_000)
		warm := send(t, r, first)
		r.End(0, first)
		for i := range l.pending {
			l.pending[i] = 1 // nothing by chance: the others are equal and not lower
		}
		l.pending[warm] = 1 + float64(c.ahead)
		next := call(1, 10_000)
		for i := c.shared / step.BlockTokens; i < len(next.Req.Blocks); i++ {
			next.Req.Blocks[i] |= 9 << 50
		}
		cold := (warm + 1) % 4
		l.pending[cold] = 0.5
		if slot := send(t, r, next); (slot == warm) != c.stays || !c.stays && slot != cold {
			t.Errorf("%d warm, %d ahead: slot %d of warm %d", c.shared, c.ahead, slot, warm)
		}
	}
}

// TestLMetric: the least product, with the new request in it.
func TestLMetric(t *testing.T) {
	for _, c := range []struct {
		live  int // requests on the warm one
		stays bool
	}{{0, true}, {8, true}, {9, true}, {11, false}} {
		l := newLedger(env(t, 2))
		r := &immediate{l, &lmetric{l}}
		first := call(1, 6400)
		warm := send(t, r, first)
		r.End(0, first)
		l.live[warm] = c.live
		next := call(1, 7040) // 640 uncached: 640*(live+1) against 7,040
		for i := 400; i < 440; i++ {
			next.Req.Blocks[i] |= 9 << 50
		}
		if slot := send(t, r, next); (slot == warm) != c.stays {
			t.Errorf("%d on the warm one: slot %d, warm %d", c.live, slot, warm)
		}
	}
}

// TestWeighted: 2 for the shorter queue, 2 for free KV, 3 for the prefix, from the last scrapes.
func TestWeighted(t *testing.T) {
	for _, c := range []struct {
		name        string
		warm, other step.Stats // of the replica that holds all of the prompt, and of the other
		stays       bool
	}{
		{"alike", step.Stats{}, step.Stats{}, true},
		{"longer queue", step.Stats{Waiting: 9}, step.Stats{}, true}, // 3 against 2
		{"queue and KV", step.Stats{Waiting: 9, KVUsed: 60, KVBlocks: 100}, step.Stats{KVBlocks: 100}, false},
		{"less KV", step.Stats{KVUsed: 99, KVBlocks: 100}, step.Stats{KVBlocks: 100}, true},
		{"queue, a little KV", step.Stats{Waiting: 9, KVUsed: 40, KVBlocks: 100}, step.Stats{KVBlocks: 100}, true},
	} {
		l := newLedger(env(t, 2))
		r := &immediate{l, &weighted{l}}
		first := call(1, 6400)
		warm := send(t, r, first)
		r.Observe(0, warm, c.warm)
		r.Observe(0, 1-warm, c.other)
		if slot := send(t, r, call(1, 6400)); (slot == warm) != c.stays {
			t.Errorf("%s: slot %d, warm %d", c.name, slot, warm)
		}
	}
}

// TestOracleSees a cache that no router knows of, and a backlog that no router made.
func TestOracleSees(t *testing.T) {
	e := env(t, 3)
	other := call(1, 8000)
	if err := e.Replicas[2].Submit(0, &other.Seq); err != nil {
		t.Fatal(err)
	}
	e.Replicas[2].Advance(time.Minute)
	r := mustNew(t, "oracle", e)
	c := call(1, 8000)
	if slot := send(t, r, c); slot != 2 {
		t.Fatalf("slot %d does not hold the prompt", slot)
	}
	if err := e.Replicas[2].Submit(time.Minute, &c.Seq); err != nil {
		t.Fatal(err)
	}
	// Its own backlog is known, too: what is long enough behind it goes elsewhere.
	for range 40 {
		c := call(7, 100_000)
		slot := send(t, r, c)
		if err := e.Replicas[slot].Submit(time.Minute, &c.Seq); err != nil {
			t.Fatal(err)
		}
	}
	o := r.(*oracle)
	for i := range 3 {
		if len(o.ahead[i]) < 5 {
			t.Errorf("replica %d has %d of 41 in its queue", i, len(o.ahead[i]))
		}
	}
}

// TestOracleSeesSpeed: of two replicas the faster one takes as much more as it is faster, also when it is so by its steps and
// not by its profile. weir is told one profile for all.
func TestOracleSeesSpeed(t *testing.T) {
	for _, c := range []struct {
		profile     string
		slow        float64
		least, most int // of 30 the first one's, an 8B
	}{{"8B", 1, 14, 16}, {"32B", 1, 18, 22}, {"8B", 2, 8, 12}, {"32B", 2, 13, 16}} {
		e := env(t, 1)
		p, err := step.Lookup(c.profile)
		if err != nil {
			t.Fatal(err)
		}
		r, err := step.New(p)
		if err != nil {
			t.Fatal(err)
		}
		e.Replicas = append(e.Replicas, r)
		e.Replicas[0].SetSlow(c.slow)
		o, n := mustNew(t, "oracle", e), 0
		for i := range 30 {
			if send(t, o, call(i, 3200)) == 0 {
				n++
			}
		}
		if n < c.least || n > c.most {
			t.Errorf("beside a %s an 8B at 1/%v of its speed takes %d of 30, want %d to %d", c.profile, c.slow, n, c.least, c.most)
		}
	}
}
