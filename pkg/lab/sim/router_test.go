package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
	"github.com/weirproxy/weir/pkg/route"
)

// fake is a Router whose answers a test writes, and which notes what it is told.
type fake struct {
	state    policy.State
	slot     int
	due      bool
	until    time.Duration // held ones are let go at it; 0: never
	held     []*policy.Call
	released []time.Duration
	observed map[int][]time.Duration
	stats    map[int][]step.Stats
	ended    int
	began    int
	arrived  int
	refused  int
}

func (f *fake) Arrive(now time.Duration, c *policy.Call) bool {
	f.arrived++
	c.State, c.Slot, c.Outcome = f.state, f.slot, route.Full
	if f.state == policy.Held {
		f.held = append(f.held, c)
	}
	return f.due || f.state == policy.Held
}

func (f *fake) Release(now time.Duration, done []*policy.Call) []*policy.Call {
	f.released = append(f.released, now)
	if f.until == 0 || now < f.until {
		return done
	}
	for _, c := range f.held {
		c.State, c.Slot = policy.Sent, f.slot
		done = append(done, c)
	}
	f.held = nil
	return done
}

func (f *fake) Next() (time.Duration, bool) { return f.until, f.until > 0 && len(f.held) > 0 }

func (f *fake) First(time.Duration, *policy.Call) { f.began++ }

func (f *fake) End(time.Duration, *policy.Call) bool {
	f.ended++
	return false
}

func (f *fake) Retry(_ time.Duration, c *policy.Call) bool {
	c.Slot++
	return true
}

func (f *fake) Refuse(time.Duration, int) { f.refused++ }

func (f *fake) Observe(now time.Duration, slot int, s step.Stats) bool {
	if f.observed == nil {
		f.observed, f.stats = map[int][]time.Duration{}, map[int][]step.Stats{}
	}
	f.observed[slot], f.stats[slot] = append(f.observed[slot], now), append(f.stats[slot], s)
	return false
}

// withFakes is a simulation whose routers are fakes.
func withFakes(t *testing.T, cfg Config, fakes ...*fake) *Sim {
	t.Helper()
	cfg.Routers = len(fakes)
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range fakes {
		s.routers[i] = f
	}
	return s
}

// TestOneReplicaForAll: of a router that sends everything to one of N replicas the skew is N.
func TestOneReplicaForAll(t *testing.T) {
	for _, n := range []int{1, 2, 7} {
		cfg := config("random", 1)
		cfg.Replicas = n
		s := withFakes(t, cfg, &fake{state: policy.Sent, slot: n - 1})
		r, err := s.Run(newGroups(1, 5, 200), Span{Warmup: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if r.Skew < float64(n)-1e-9 || r.Skew > float64(n)+1e-9 {
			t.Errorf("%d replicas: skew %v", n, r.Skew)
		}
	}
}

// TestHeldUntilTheTimer: a held request goes when its router's own time comes, though nothing else happens then.
func TestHeldUntilTheTimer(t *testing.T) {
	f := &fake{state: policy.Held, until: 3500*time.Millisecond + 7}
	s := withFakes(t, config("random", 1), f)
	r, err := s.Run(&one{Prompt: 100, Output: 1, At: time.Second}, Span{})
	if err != nil {
		t.Fatal(err)
	}
	if f.released[0] != time.Second || !slices.Contains(f.released, f.until) {
		t.Errorf("released at %v, want first at 1s and once at %v", f.released, f.until)
	}
	// From the intended arrival: 2.5 s of hold, 15 ms API, a step of 6.9044 ms and 100 tokens.
	if want := 2.5 + 7e-9 + 0.015 + 0.0069044 + 100*27.8e-6; r.TTFTMean < want-1e-9 || r.TTFTMean > want+1e-9 {
		t.Errorf("TTFT %v, want %v", r.TTFTMean, want)
	}
	if f.began != 1 || f.ended != 1 {
		t.Errorf("told of %d beginnings and %d ends", f.began, f.ended)
	}
}

// TestRefusedAreCounted, and told to nobody's replica.
func TestRefusedAreCounted(t *testing.T) {
	f := &fake{state: policy.Refused}
	s := withFakes(t, config("random", 1), f)
	r, err := s.Run(newGroups(1, 5, 20), Span{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Refused != 20 || r.Answered != 0 || f.ended != 0 || r.Classes["interactive"].Refused != 20 {
		t.Errorf("%+v", r)
	}
}

// TestTooLongIsRefused: what no replica can hold ends, and its router learns of the end.
func TestTooLongIsRefused(t *testing.T) {
	for _, name := range policy.Names() {
		cfg := config(name, 1)
		_, r := mustRun(t, cfg, &one{Prompt: cfg.Profile.KVTokens, Output: 1}, Span{})
		if r.Refused != 1 || r.Arrived != 1 {
			t.Errorf("%s: %+v", name, r.Figures)
		}
	}
}

// TestScrapes reach every router each second, each replica's at a phase of its own, as old as Config says.
func TestScrapes(t *testing.T) {
	for _, stale := range []time.Duration{0, 300 * time.Millisecond, 2500 * time.Millisecond} {
		cfg := config("random", 1)
		cfg.Stale = stale
		a, b := &fake{state: policy.Sent}, &fake{state: policy.Sent}
		s := withFakes(t, cfg, a, b)
		if _, err := s.Run(newGroups(1, 10, 200), Span{}); err != nil {
			t.Fatal(err)
		}
		phases := map[time.Duration]bool{}
		for i := range cfg.Replicas {
			at := a.observed[i]
			if len(at) < 15 || !slices.Equal(at, b.observed[i]) {
				t.Fatalf("replica %d: %d and %d scrapes", i, len(at), len(b.observed[i]))
			}
			for j := 1; j < len(at); j++ {
				if at[j]-at[j-1] != time.Second {
					t.Errorf("replica %d: scrapes %v apart", i, at[j]-at[j-1])
				}
			}
			if at[0] < stale || at[0] >= stale+time.Second {
				t.Errorf("replica %d: first seen at %v", i, at[0])
			}
			phases[at[0]] = true
		}
		if len(phases) != cfg.Replicas {
			t.Errorf("%d phases of %d replicas", len(phases), cfg.Replicas)
		}
		if n := a.arrived + b.arrived; n != 200 || a.arrived < 60 || b.arrived < 60 {
			t.Errorf("routers got %d and %d of 200", a.arrived, b.arrived)
		}
		last := a.stats[0][len(a.stats[0])-1]
		if last.Prompt == 0 {
			t.Error("a scrape of a replica that worked shows no tokens")
		}
	}
}

// one is a source of one request.
type one workload.Request

func (o *one) Next() (*workload.Request, bool) {
	if o.Prompt == 0 {
		return nil, false
	}
	q := workload.Request(*o)
	o.Prompt = 0
	return &q, true
}

// TestConserveFinds: each law is seen to be broken.
func TestConserveFinds(t *testing.T) {
	for _, c := range []struct {
		says  string
		spoil func(*Sim)
	}{
		{"late", func(s *Sim) { s.run.total.late++ }},
		{"are open", func(s *Sim) { s.open++ }},
		{"answer tokens", func(s *Sim) { s.run.total.output++ }},
		{"prompt", func(s *Sim) { s.run.begun[1].Prompt++ }},
		{"not idle", func(s *Sim) {
			if err := s.replicas[2].Submit(s.now, &step.Seq{Prompt: 1, Output: 1}); err != nil {
				panic(err)
			}
		}},
	} {
		s, _ := mustRun(t, config("random", 1), newGroups(1, 5, 50), Span{})
		if err := s.conserve(); err != nil {
			t.Fatal(err)
		}
		c.spoil(s)
		if err := s.conserve(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v", c.says, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for says, spoil := range map[string]func(*Config){
		"0 replicas":   func(c *Config) { c.Replicas = 0 },
		"513 replicas": func(c *Config) { c.Replicas = 513 },
		"3 profiles":   func(c *Config) { c.Each = []step.Profile{c.Profile, c.Profile, c.Profile} },
		"5 routers":    func(c *Config) { c.Routers = 5 },
		"no policy":    func(c *Config) { c.Policy = "best" },
		"gauges":       func(c *Config) { c.Stale = -1 },
		"KV of 3":      func(c *Config) { c.Profile.KVTokens = 3 },
	} {
		cfg := config("random", 1)
		spoil(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
