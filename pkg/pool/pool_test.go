package pool

import (
	"math"
	"testing"
	"time"
)

// plain is a replica whose steps take 10 ms however many sequences run, so that an uncached token takes
// 100 us + 10 ms / 100 = 200 us, whatever else happens: 5,000 drain in a second.
var plain = Config{
	Profile: "8B", Step: 10 * time.Millisecond, PerPromptToken: 100 * time.Microsecond, Chunk: 100,
	MaxKVPercent: 100, KVTokens: 64_000, Seats: 4, OutputTokens: 256,
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(math.Round(seconds * 1e9)))
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// event is one thing that happens to a replica. The lease charged n-th is named n.
type event struct {
	at      float64
	charge  float64 // uncached tokens; 0: none
	release int     // lease; 0: none
	giveUp  int     // lease, released without an answer; 0: none
	tokens  float64 // a scrape with this counter; 0: none
	want    float64 // backlog right after it
}

func TestBacklog(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []event
	}{
		{"drains at 1/P and ends at zero", []event{
			{at: 0, charge: 1000, want: 1000},
			{at: 0.1, want: 500},
			{at: 0.2, want: 0},
			{at: 5, want: 0},
		}},
		{"does not drain before it is charged", []event{
			{at: 10, charge: 1000, want: 1000},
			{at: 10.05, want: 750},
		}},
		{"adds up", []event{
			{at: 0, charge: 1000, want: 1000},
			{at: 0.1, charge: 300, want: 800},
			{at: 0.1, charge: 200, want: 1000},
			{at: 0.2, want: 500},
		}},
		{"a drained lease takes nothing back", []event{
			{at: 0, charge: 1000, want: 1000},
			{at: 0.1, charge: 1000, want: 1500},
			{at: 0.25, want: 750},
			{at: 0.25, release: 1, want: 750},
		}},
		{"a lease half drained takes back the other half", []event{
			{at: 0, charge: 1000, want: 1000},
			{at: 0.05, charge: 1000, want: 1750},
			{at: 0.1, release: 1, want: 1000},
		}},
		{"a lease behind takes back all of it", []event{
			{at: 0, charge: 1000, want: 1000},
			{at: 0.1, charge: 300, want: 800},
			{at: 0.1, release: 2, want: 500},
			{at: 0.15, want: 250},
		}},
		{"leases released in any order leave only the live ones", []event{
			{at: 0, charge: 100, want: 100},
			{at: 0, charge: 200, want: 300},
			{at: 0, charge: 100, want: 400},
			{at: 0.01, want: 350},
			{at: 0.01, release: 2, want: 150},
			{at: 0.01, release: 1, want: 100},
			{at: 0.01, charge: 50, want: 150},
			{at: 0.01, release: 3, want: 50},
			{at: 0.02, want: 0},
		}},
		{"released twice counts once", []event{
			{at: 0, charge: 1000, want: 1000},
			{at: 0, charge: 1000, want: 2000},
			{at: 0, release: 1, want: 1000},
			{at: 0, release: 1, want: 1000},
		}},
		{"without progress it drains for three seconds", []event{
			{at: 0, charge: 50_000, want: 50_000},
			{at: 3, want: 35_000},
			{at: 3.5, want: 35_000},
			{at: 60, want: 35_000},
			{at: 60, charge: 1000, want: 36_000},
			{at: 120, want: 36_000},
		}},
		{"a counter that moves is progress, one that stands still is none", []event{
			{at: 0, charge: 50_000, want: 50_000},
			{at: 1, tokens: 10, want: 45_000},
			{at: 2, tokens: 11, want: 40_000},
			{at: 3, tokens: 11, want: 35_000},
			{at: 5, tokens: 11, want: 25_000},
			{at: 7, tokens: 11, want: 25_000},
			{at: 9, tokens: 12, want: 25_000}, // what passed in silence is not credited afterwards
			{at: 10, tokens: 12, want: 20_000},
		}},
		{"a lease's end without an answer is no progress", []event{
			{at: 0, charge: 5000, want: 5000},
			{at: 0, charge: 50_000, want: 55_000},
			{at: 3, want: 40_000},
			{at: 4, giveUp: 1, want: 40_000},
			{at: 9, want: 40_000},
		}},
		{"an answer is progress", []event{
			{at: 0, charge: 5000, want: 5000},
			{at: 0, charge: 50_000, want: 55_000},
			{at: 3, want: 40_000},
			{at: 4, release: 1, want: 40_000},
			{at: 5, want: 35_000},
			{at: 9, want: 25_000},
		}},
		{"patience begins with the first lease after idling", []event{
			{at: 0, charge: 1000, want: 1000},
			{at: 1, release: 1, want: 0},
			{at: 100, charge: 5000, want: 5000},
			{at: 100.5, want: 2500},
		}},
		{"time that runs backwards drains nothing", []event{
			{at: 1, charge: 1000, want: 1000},
			{at: 0.9, charge: 1000, want: 2000},
			{at: 1.1, want: 1500},
			{at: 1.05, release: 1, want: 1000}, // a look at 1.1 moved nothing: 750 were left
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := New("p", []string{"a"}, plain).Replicas[0]
			leases := []*Lease{nil}
			for i, e := range c.events {
				now := at(e.at)
				switch {
				case e.charge > 0:
					l := &Lease{}
					r.charge(now, l, Load{Prompt: e.charge, Uncached: e.charge, Output: 10})
					leases = append(leases, l)
				case e.giveUp > 0:
					leases[e.giveUp].Release(now, false)
				case e.release > 0:
					leases[e.release].Release(now, true)
				case e.tokens > 0:
					r.Observe(now, Sample{At: now, Tokens: e.tokens, HasTokens: true})
				}
				v := r.View(now)
				if !near(v.Backlog, e.want) || !near(v.Wait, e.want*200e-6) {
					t.Errorf("event %d at %v s: backlog %v, wait %v s, want %v and %v", i, e.at, v.Backlog, v.Wait, e.want, e.want*200e-6)
				}
			}
		})
	}
}

func TestViewFollowsTheStepModel(t *testing.T) {
	cfg := plain
	cfg.PerSequence, cfg.PerContextToken = time.Millisecond, 10*time.Microsecond
	r := New("p", []string{"a"}, cfg).Replicas[0]
	var leases [4]Lease
	r.charge(at(0), &leases[0], Load{Prompt: 1000, Uncached: 400, Output: 200})
	r.charge(at(0), &leases[1], Load{Prompt: 500, Uncached: 500, Output: 100})
	// 10 ms, 2 sequences of 1 ms, 1000+100 + 500+50 tokens of context at 10 us.
	d := 0.010 + 0.002 + 0.0165
	p := 0.0001 + d/100
	v := r.View(at(0))
	if !near(v.Step, d) || !near(v.Prefill, p) || v.Backlog != 900 || !near(v.Wait, 900*p) || v.Tau != 0.5 {
		t.Errorf("View = %+v, want D %v, P %v, V 900, tau 0.5", v, d, p)
	}
	if v := r.View(at(0.1)); !near(v.Backlog, 900-0.1/p) {
		t.Errorf("backlog after 0.1 s = %v, want %v", v.Backlog, 900-0.1/p)
	}
	// The rate of the time before an event is the one that held then.
	r.charge(at(0.1), &leases[2], Load{Prompt: 1, Uncached: 1})
	if v := r.View(at(0.1)); !near(v.Backlog, 901-0.1/p) {
		t.Errorf("backlog after the third = %v, want %v", v.Backlog, 901-0.1/p)
	}
}

func TestBelowTheKnee(t *testing.T) {
	for _, c := range []struct {
		name string
		v    View
		want bool
	}{
		{"idle", View{Tau: 0.5, Free: true}, true},
		{"just below", View{Wait: 0.4999, Tau: 0.5, Used: 0.999, Free: true}, true},
		{"at tau", View{Wait: 0.5, Tau: 0.5, Free: true}, false},
		{"KV full", View{Tau: 0.5, Used: 1, Free: true}, false},
		{"KV full once the answers are there", View{Tau: 0.5, Used: 0.9, KV: 1.1, Free: true}, true},
		{"KV unknown to arithmetic", View{Tau: 0.5, Used: math.NaN(), Free: true}, false},
		{"wait unknown to arithmetic", View{Wait: math.NaN(), Tau: 0.5, Free: true}, false},
		{"no seat", View{Tau: 0.5}, false},
	} {
		if got := c.v.Below(); got != c.want {
			t.Errorf("%s: Below = %v", c.name, got)
		}
	}
}

func TestSeats(t *testing.T) {
	r := New("p", []string{"a"}, plain).Replicas[0]
	var leases [4]Lease
	for i := range leases {
		if !r.View(at(0)).Free {
			t.Fatalf("no seat with %d of 4 taken", i)
		}
		r.charge(at(0), &leases[i], Load{Prompt: 1, Uncached: 1})
	}
	if r.View(at(0)).Free {
		t.Error("a seat is free with 4 of 4 taken")
	}
	leases[2].Release(at(0), true)
	if !r.View(at(0)).Free {
		t.Error("no seat is free after a release")
	}
}

func TestDrains(t *testing.T) {
	r := New("p", []string{"a"}, plain).Replicas[0]
	var l Lease
	r.charge(at(0), &l, Load{Prompt: 20_000, Uncached: 20_000}) // 4 s
	for _, c := range []struct {
		now, below float64
		want       time.Duration
		ok         bool
	}{
		{0, 5, 0, true},
		{0, 3.5, 500 * time.Millisecond, true},
		{0, 1, 3 * time.Second, true},
		{0, 0.9, 3100 * time.Millisecond, false}, // nothing is credited after three seconds of silence
		{2, 1, time.Second, true},
		{3, 1, 0, true}, // rounding: at or below
		{10, 0.5, 500 * time.Millisecond, false},
	} {
		d, ok := r.Drains(at(c.now), r.View(at(c.now)), c.below)
		if (d-c.want).Abs() > time.Microsecond || ok != c.ok {
			t.Errorf("Drains to %v s at %v s = %v, %v, want %v, %v", c.below, c.now, d, ok, c.want, c.ok)
		}
	}
}

// The reader of a View at the time that Drains names finds the replica there, so that nobody who waits for
// that time waits for nothing.
func TestDrainsNamesTheTime(t *testing.T) {
	for u := 1000.0; u < 17_000; u += 777 {
		r := New("p", []string{"a"}, plain).Replicas[0]
		var l Lease
		r.charge(at(0), &l, Load{Prompt: u, Uncached: u})
		d, ok := r.Drains(at(0), r.View(at(0)), 0.5)
		if v := r.View(at(0).Add(d + time.Microsecond)); ok && v.Wait >= 0.5 {
			t.Errorf("%v tokens: wait %v s after %v, want under 0.5", u, v.Wait, d)
		}
	}
}

func TestWorkIsAMovingMean(t *testing.T) {
	p := New("p", []string{"a", "b"}, plain)
	if p.Work() != 0 {
		t.Errorf("work %v before any request", p.Work())
	}
	var leases [3]Lease
	p.Charge(at(0), &leases[0], p.Replicas[0], Load{Prompt: 1000, Uncached: 1000})
	if !near(p.Work(), 0.1) {
		t.Errorf("work %v after the first request, want its own 0.1", p.Work())
	}
	p.Charge(at(0), &leases[1], p.Replicas[1], Load{Prompt: 9000, Uncached: 2000})
	if want := 0.1 + 0.01*(0.2-0.1); !near(p.Work(), want) {
		t.Errorf("work %v, want %v", p.Work(), want)
	}
}

func TestNewPool(t *testing.T) {
	p := New("llm", []string{"10.0.0.1:8000", "10.0.0.2:8000"}, plain)
	for i, r := range p.Replicas {
		if r.Slot != i || p.Replica(r.Endpoint) != r || r.Index == nil {
			t.Errorf("replica %d: slot %d, by endpoint %v", i, r.Slot, p.Replica(r.Endpoint))
		}
	}
	if p.Replica("10.0.0.3:8000") != nil {
		t.Error("a replica that is not there is found")
	}
	if h := New("none", nil, plain).Home(1); h != -1 {
		t.Errorf("home in an empty pool = %d", h)
	}
	home := p.Home(99)
	if p.Score(99, home) < p.Score(99, 1-home) {
		t.Error("the home does not score highest")
	}
	// The same endpoints in another order: the same home.
	q := New("llm", []string{"10.0.0.2:8000", "10.0.0.1:8000"}, plain)
	if p.Replicas[home].Endpoint != q.Replicas[q.Home(99)].Endpoint {
		t.Error("the home depends on the order of endpoints")
	}
}
