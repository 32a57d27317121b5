package pool

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// sick is one thing that happens to a replica at a second, and whether it is out right after it.
type sick struct {
	at   float64
	what string // fail, out, refuse, answer, charge, end, give up, same or more (of the token counter); empty: a look
	down bool
}

func TestHealth(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []sick
	}{
		{"a new replica is well", []sick{{0, "", false}, {100, "", false}}},
		{"one failure is none", []sick{{0, "fail", false}, {60, "", false}}},
		{"two are", []sick{{0, "fail", false}, {30, "fail", true}, {30.999, "", true}, {31, "", false}}},
		{"an answer between them", []sick{{0, "fail", false}, {1, "answer", false}, {2, "fail", false}, {3, "fail", true}}},
		{"a counter that moves between them", []sick{{0, "same", false}, {0, "fail", false}, {1, "more", false}, {2, "fail", false}}},
		{"a counter that stands between them", []sick{{0, "same", false}, {0, "fail", false}, {1, "same", false}, {2, "fail", true}}},
		{"a client that gave up between them", []sick{{0, "fail", false}, {1, "charge", false}, {1, "give up", false}, {2, "fail", true}}},
		{"one that needs no second", []sick{{0, "out", true}, {0.999, "", true}, {1, "", false}}},
		{"the back-off doubles up to 16 s", []sick{
			{0, "out", true}, {0.999, "", true}, {1, "", false},
			{1, "out", true}, {2.999, "", true}, {3, "", false},
			{3, "fail", true}, {6.999, "", true}, {7, "", false},
			{7, "out", true}, {14.999, "", true}, {15, "", false},
			{15, "fail", true}, {30.999, "", true}, {31, "", false},
			{31, "out", true}, {46.999, "", true}, {47, "", false},
			{1000, "fail", true}, {1015.999, "", true}, {1016, "", false},
		}},
		{"failures while it is out add nothing", []sick{
			{0, "out", true}, {0.1, "fail", true}, {0.5, "out", true}, {0.999, "fail", true}, {1, "", false},
			{1, "fail", true}, {2.999, "", true}, {3, "", false},
		}},
		{"one trial at a time", []sick{
			{0, "out", true}, {1, "", false}, {1, "charge", true}, {1.5, "", true}, {9, "", true},
			{9, "give up", false}, {9, "charge", true}, {9.5, "fail", true}, {9.5, "give up", true}, {11.499, "", true}, {11.5, "", false},
		}},
		{"a trial that is answered forgets all", []sick{
			{0, "out", true}, {1, "out", true}, {3, "out", true}, {7, "charge", true}, {7.1, "end", false},
			{8, "fail", false}, {9, "fail", true}, {9.999, "", true}, {10, "", false},
		}},
		{"a request that was there before is no trial", []sick{
			{0, "charge", false}, {0, "out", true}, {1, "", false}, {1, "charge", true}, {1.1, "end", false},
		}},
		{"its answer is a success all the same", []sick{{0, "charge", false}, {0, "out", true}, {0.5, "end", false}}},
		{"a restart is a success", []sick{{0, "more", false}, {1, "more", false}, {2, "out", true}, {2.5, "less", false}}},
		{"a refused connection waits for a page", []sick{{0, "same", false}, {0, "refuse", true}, {1, "", true}, {9, "same", false}, {9, "charge", true}, {9.5, "end", false}}},
		{"or for the longest back-off", []sick{{0, "refuse", true}, {15.999, "", true}, {16, "", false}, {17, "refuse", true}, {30, "refuse", true}, {45.999, "", true}, {46, "", false}}},
		{"a page forgives a refusal only", []sick{{0, "same", false}, {0, "out", true}, {0.5, "same", true}, {1, "", false}}},
		{"an answer forgives it, too", []sick{{0, "charge", false}, {1, "refuse", true}, {2, "end", false}, {3, "fail", false}}},
	} {
		t.Run(c.name, func(t *testing.T) { play(t, c.events) })
	}
}

func play(t *testing.T, events []sick) {
	t.Helper()
	r := New("p", []string{"a"}, plain).Replicas[0]
	var live []*Lease
	count := 100.0
	for i, e := range events {
		now := at(e.at)
		switch e.what {
		case "fail":
			r.Fail(now)
		case "out":
			r.takeOut(now)
		case "refuse":
			r.Refuse(now)
		case "charge":
			live = append(live, &Lease{})
			r.charge(now, live[len(live)-1], Load{Prompt: 10, Uncached: 10})
		case "end", "give up":
			live[len(live)-1].Release(now, e.what == "end")
			live = live[:len(live)-1]
		case "answer":
			var l Lease
			r.charge(now, &l, Load{Prompt: 10, Uncached: 10})
			l.Release(now, true)
		case "same", "more", "less":
			count += map[string]float64{"more": 1, "less": -50}[e.what]
			r.Observe(now, Sample{At: now, Tokens: count, HasTokens: true})
		}
		if v := r.View(now); v.Down != e.down || r.Stats(now).Down != e.down {
			t.Errorf("event %d at %v s, %q: down %v, want %v", i, e.at, e.what, v.Down, e.down)
		}
	}
}

// A replica whose counter stands still is out after three seconds of silence and three more, or four times what its
// longest prompt takes; one that does nothing, or has one long prompt to compute, is not.
func TestStall(t *testing.T) {
	const never = 1000
	for _, c := range []struct {
		name     string
		uncached float64 // of the one request, charged at 0; 0: none
		tokens   func(s float64) (count float64, has bool)
		out      float64 // the second of the scrape that takes it out
	}{
		{"hung on a short prompt", 100, func(float64) (float64, bool) { return 7, true }, 7},
		{"idle", 0, func(float64) (float64, bool) { return 7, true }, never},
		{"no counter", 100, func(float64) (float64, bool) { return 0, false }, never},
		{"a counter that is lost", 100, func(s float64) (float64, bool) { return 7, s < 3 }, never},
		{"decoding", 100, func(s float64) (float64, bool) { return s, true }, never},
		{"a token in five seconds", 100, func(s float64) (float64, bool) { return math.Floor(s / 5), true }, never},
		// 100,000 tokens are 20 s by the profile, and 60 on a replica three times as slow; 10,000 are two, and four times those
		// after the first three are silence enough.
		{"a long prompt on a slow replica", 100_000, func(s float64) (float64, bool) { return math.Floor(s/59.5) * 1e5, true }, never},
		{"a long prompt alone", 100_000, func(s float64) (float64, bool) { return math.Floor(s/21) * 1e5, true }, never},
		{"hung on a long prompt", 10_000, func(float64) (float64, bool) { return 7, true }, 12},
		{"hangs after a while", 100, func(s float64) (float64, bool) { return min(s, 20), true }, 27},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := New("p", []string{"a"}, plain).Replicas[0]
			count, has := c.tokens(0)
			r.Observe(at(0), Sample{At: at(0), Tokens: count, HasTokens: has})
			if c.uncached > 0 {
				r.charge(at(0), &Lease{}, Load{Prompt: c.uncached, Uncached: c.uncached, Output: 1000})
			}
			first := float64(never)
			for s := 1.0; s < 60 && first == never; s++ {
				count, has := c.tokens(s)
				r.Observe(at(s), Sample{At: at(s), Tokens: count, HasTokens: has})
				if r.View(at(s)).Down {
					first = s
				}
			}
			if first != c.out {
				t.Errorf("out at %v s, want %v", first, c.out)
			}
		})
	}
}

// A client that reads slowly keeps its request open when its replica has long done it: no counter moves, and the
// replica is taken out. The next request after a second shows that it is well.
func TestSlowReaderCostsOneSecond(t *testing.T) {
	r := New("p", []string{"a"}, plain).Replicas[0]
	scrape := func(s, tokens float64) { r.Observe(at(s), Sample{At: at(s), Tokens: tokens, HasTokens: true}) }
	r.charge(at(0), &Lease{}, Load{Prompt: 100, Uncached: 100})
	scrape(0, 1)
	for s := 1.0; s <= 40; s++ {
		scrape(s, 500)
	}
	if r.View(at(40)).Down {
		t.Error("out with nothing that tries it: a stall counts again and again")
	}
	var trial Lease
	r.charge(at(40.1), &trial, Load{Prompt: 100, Uncached: 100})
	if !r.View(at(40.2)).Down {
		t.Error("the second of a replica that was out is let in beside the first")
	}
	scrape(41, 600)
	if r.View(at(41)).Down {
		t.Error("out though its counter moves")
	}
}

// A trial has as long to show progress as any first request, and fails then.
func TestTrialOfAHungReplicaFails(t *testing.T) {
	r := New("p", []string{"a"}, plain).Replicas[0]
	scrape := func(s float64) { r.Observe(at(s), Sample{At: at(s), Tokens: 5, HasTokens: true}) }
	r.charge(at(0), &Lease{}, Load{Prompt: 100, Uncached: 100})
	for s := 0.0; s <= 20; s++ {
		scrape(s)
	}
	r.charge(at(20), &Lease{}, Load{Prompt: 100, Uncached: 100})
	for s := 21.0; s <= 26; s++ {
		scrape(s)
	}
	if n := r.health.failures; n != failuresDown {
		t.Errorf("%d failures within six seconds of the trial, want %d", n, failuresDown)
	}
	scrape(27)
	if n := r.health.failures; n != failuresDown+1 || !r.health.until.Equal(at(29)) {
		t.Errorf("%d failures after them, out until %v; want %d and two seconds", n, r.health.until.Sub(at(27)), failuresDown+1)
	}
}

func TestCounted(t *testing.T) {
	r := New("p", []string{"a"}, plain).Replicas[0]
	want := func(when string, s float64, counted bool) {
		t.Helper()
		if got := r.Counted(at(s)); got != counted {
			t.Errorf("%s: counted %v", when, got)
		}
	}
	want("never scraped", 0, false)
	r.Observe(at(1), Sample{At: at(1), KV: 0.5, HasKV: true})
	want("a page without a counter", 1, false)
	r.Observe(at(2), Sample{At: at(2), HasTokens: true})
	want("a counter of zero", 2, true)
	r.Observe(at(4), Sample{At: at(4)})
	want("a page without it, shortly after", 4.9, true)
	r.Observe(at(5), Sample{At: at(5)})
	want("the counter is three seconds old, the page fresh", 5, false)
}

// Whatever happens in whatever order, no number of a View is negative or NaN, and no replica is out for longer
// than the longest back-off unless something tries it.
func TestHealthIsSaneUnderRandomEvents(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		r := New("p", []string{"a"}, plain).Replicas[0]
		var live []*Lease
		now := epoch
		for range 300 {
			now = now.Add(time.Duration(rng.ExpFloat64() * 1e9))
			switch rng.IntN(6) {
			case 0:
				r.Fail(now)
			case 1:
				r.Refuse(now)
			case 2:
				live = append(live, &Lease{})
				r.charge(now, live[len(live)-1], Load{Prompt: 9000 * rng.Float64(), Uncached: 9000 * rng.Float64(), Output: 100})
			case 3:
				if len(live) > 0 {
					live[0].Release(now, rng.IntN(8) == 0)
					live = live[1:]
				}
			default:
				r.Observe(now, Sample{At: now, Tokens: float64(rng.IntN(2)), HasTokens: rng.IntN(2) == 0})
			}
			v := r.View(now.Add(time.Duration(rng.IntN(2e9))))
			for _, n := range []float64{v.Backlog, v.Step, v.Prefill, v.Wait, v.Tau, v.KV, float64(r.Leases()), float64(r.health.failures)} {
				if !(n >= 0) || math.IsInf(n, 0) {
					t.Fatalf("seed %d: %+v", seed, v)
				}
			}
			if late := r.View(now.Add(maxDown)); late.Down != (r.health.failing() && r.health.trial != nil) {
				t.Fatalf("seed %d: out %v after the longest back-off, health %+v", seed, late.Down, r.health)
			}
		}
	}
}
