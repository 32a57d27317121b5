package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/workload"
	"github.com/weirproxy/weir/pkg/pool"
)

// alike is a Poisson source of requests of one size, of which no two share anything.
type alike struct {
	rng            *rand.Rand
	rate           float64
	prompt, output int
	at             time.Duration
}

func (a *alike) Next() (*workload.Request, bool) {
	a.at += time.Duration(a.rng.ExpFloat64() / a.rate * 1e9)
	return &workload.Request{At: a.at, Prompt: a.prompt, Output: a.output}, true
}

func newAlike(rate float64, prompt, output int) *alike {
	return &alike{rng: rand.New(rand.NewPCG(1, 2)), rate: rate, prompt: prompt, output: output}
}

// estimates is what weir, the only router, has learned of each replica.
func (s *Sim) estimates(t *testing.T) []pool.Estimates {
	t.Helper()
	e, ok := s.Estimates(0)
	if !ok {
		t.Fatal("the router is not weir")
	}
	return e.Replicas
}

// TestThroughputOfWrongRates: from a cold start with rates that are wrong by a factor of two either way, two minutes later a
// full pool does at least 0.95 of what it does with the right ones; also where the replicas tell no gaps between tokens, or
// have next to none, and only their queues can tell.
func TestThroughputOfWrongRates(t *testing.T) {
	for _, c := range []struct {
		prompt, output int
		rate           float64 // 1.2 times what fits
	}{{8000, 2, 21}, {8000, 20, 19}, {2000, 200, 60}} {
		throughput := func(told string) float64 {
			cfg := config("weir"+told, 1)
			cfg.Profile = profile(t, "8B")
			span := Span{Warmup: 2 * time.Minute, Until: 4 * time.Minute}
			_, r := mustRun(t, cfg, newAlike(c.rate, c.prompt, c.output), span)
			return r.Throughput
		}
		right := throughput("/learn=false")
		for _, told := range []string{"/rates=2", "/rates=0.5", "/rates=2/gaps=false", "/rates=0.5/gaps=false"} {
			if got := throughput(told); got < 0.95*right {
				t.Errorf("prompts of %d, answers of %d, %s: %.2f requests/s, %.2f with the right rates", c.prompt, c.output, told, got, right)
			}
		}
	}
}

// TestRatesOfAnyProfile: told to be of another profile, replicas are found to be what they are in two minutes: what a step
// takes there, and a prompt token. What of a step is whose needs loads that differ.
func TestRatesOfAnyProfile(t *testing.T) {
	for _, c := range []struct {
		workload, told string
		load           float64
		context        float64 // about what a replica holds, in tokens
	}{{"W3", "8B", 10, 270_000}, {"W3", "70B", 10, 270_000}, {"W5-35", "70B", 16, 130_000}, {"W10", "32B", 40, 33_000}} {
		w, err := workload.Lookup(c.workload)
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{Profile: profile(t, w.Profile), Replicas: w.Replicas, Routers: 1, Policy: "weir/profile=" + c.told, Seed: 1}
		span := Span{Until: 2 * time.Minute}
		stages, err := w.Stages(workload.Params{Rate: c.load, Seed: 1, Length: span.Until})
		if err != nil {
			t.Fatal(err)
		}
		s, _ := mustRun(t, cfg, stages[0].Source, span)
		for i, e := range s.estimates(t) {
			p := cfg.Profile
			got, want := e.Step.Value+e.ContextToken.Value*c.context, p.Base.Seconds()+p.PerContext.Seconds()*c.context
			if x := got / want; x < 0.85 || x > 1.15 {
				t.Errorf("%s, told to be %s, replica %d: a step takes %.3g s, it is %.3g", c.workload, c.told, i, got, want)
			}
			if x := e.PromptToken.Value / p.PerPrefill.Seconds(); x < 0.75 || x > 1.25 {
				t.Errorf("%s, told to be %s, replica %d: a prompt token takes %.2f times what it does", c.workload, c.told, i, x)
			}
			if e.Error > 0.15 {
				t.Errorf("%s, told to be %s, replica %d: steps are off by %.2f", c.workload, c.told, i, e.Error)
			}
		}
	}
}

// TestSlowReplicaIsFound: a replica that slows to a half is found within a minute, and nobody else is taken for slow; the same
// when it is as fast as before.
func TestSlowReplicaIsFound(t *testing.T) {
	for until, want := range map[time.Duration]float64{time.Minute: 1, 2 * time.Minute: 2, 3 * time.Minute: 1} {
		cfg := config("weir", 1)
		cfg.Events, _ = ParseEvents("slow:1:0.5@62s,slow:1:1@122s") // after the last answers of before
		s, _ := mustRun(t, cfg, newGroups(1, 30, 1<<30), Span{Until: until})
		for i, e := range s.estimates(t) {
			of := 1.0
			if i == 1 {
				of = want
			}
			if x := e.Slow.Value / of; x < 0.8 || x > 1.2 {
				t.Errorf("after %v, replica %d: %.2f times as slow, it is %.1f", until, i, e.Slow.Value, of)
			}
		}
	}
}

// TestRatesDoNotRatchet: over an hour, in turn at nine tenths of what fits and above it, with gaps and by the queue alone, the
// rates stay where they are. A rule on backlog by sign or ratio walks away (simulated: 1.5 to 8.7 times, where 1 is right).
func TestRatesDoNotRatchet(t *testing.T) {
	for _, c := range []struct {
		told        string
		least, most float64
	}{{"", 0.9, 1.15}, {"/gaps=false", 0.6, 1.5}} {
		cfg := config("weir"+c.told, 1)
		cfg.Profile = profile(t, "8B")
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for tenth := range 6 {
			if _, err := s.Run(newAlike([]float64{14.4, 19}[tenth%2], 8000, 20), Span{Until: 10 * time.Minute}); err != nil {
				t.Fatal(err)
			}
			for i, e := range s.estimates(t) {
				if x := e.PromptToken.Value / cfg.Profile.PerPrefill.Seconds(); x < c.least || x > c.most {
					t.Errorf("%s after %d minutes, replica %d: %.2f times the true time of a token", cfg.Policy, 10*(tenth+1), i, x)
				}
			}
		}
	}
}

// TestClientPastWeir: a tenth of all requests go to the first of eight replicas, past weir, which sees them in its gauges alone.
// Near saturation that one has more than its share by itself; weir leaves it what it can take, and is as good as one who
// counts pending tokens and sees nobody else, within a third. Without those that wait there in V its TTFT is 6 times that.
func TestClientPastWeir(t *testing.T) {
	w, err := workload.Lookup("W10")
	if err != nil {
		t.Fatal(err)
	}
	mean := func(name string) float64 {
		cfg := Config{Profile: profile(t, w.Profile), Replicas: w.Replicas, Routers: 1, Past: 0.1, Policy: name, Seed: 1}
		span := Span{Warmup: time.Minute, Until: 4 * time.Minute}
		stages, err := w.Stages(workload.Params{Rate: 60, Seed: 1, Length: span.Until})
		if err != nil {
			t.Fatal(err)
		}
		_, r := mustRun(t, cfg, stages[0].Source, span)
		t.Logf("%s: TTFT mean %.3f s, p99 %.3f", name, r.TTFTMean, r.TTFTP99)
		return r.TTFTMean
	}
	if weir, least := mean("weir"), mean("least-pending"); weir > 1.33*least {
		t.Errorf("TTFT mean %.3f s, %.3f by pending tokens", weir, least)
	}
}

// TestStaleMetrics: with more than fits, metrics that cannot be read cost nothing, as weir's own counts hold the knee, and one
// replica of ten whose metrics stay as they are a tenth at most. If all stay so, nothing shows that any works, and each is
// taken out and tried in turn: that costs more than a tenth, and traffic flows.
func TestStaleMetrics(t *testing.T) {
	throughput := func(events string) float64 {
		cfg := config("weir", 1)
		cfg.Profile, cfg.Replicas = profile(t, "8B"), 10
		if events != "" {
			var err error
			if cfg.Events, err = ParseEvents(events); err != nil {
				t.Fatal(err)
			}
		}
		_, r := mustRun(t, cfg, newAlike(46, 8000, 20), Span{Warmup: time.Minute, Until: 4 * time.Minute})
		return r.Throughput
	}
	all := throughput("")
	for events, least := range map[string]float64{"mute:0@0s": 0.97, "mute:0@30s": 0.97, "freeze:0@30s": 0.9, "mute:all@0s": 0.97, "mute:all@30s": 0.97, "freeze:all@30s": 0.8} {
		if got := throughput(events); got < least*all {
			t.Errorf("%s: %.1f requests/s, %.1f without", events, got, all)
		}
	}
}

// TestStepsLongerThanAScrape: of replicas whose steps take seconds, so that scrapes in between tell no gap, the time of a prompt
// token is found within a quarter.
func TestStepsLongerThanAScrape(t *testing.T) {
	cfg := config("weir", 1)
	cfg.Profile = profile(t, "70B")
	cfg.Profile.MaxBatch = 65536
	s, _ := mustRun(t, cfg, newAlike(1.6, 30_000, 50), Span{Until: 4 * time.Minute})
	for i, e := range s.estimates(t) {
		if x := e.PromptToken.Value / cfg.Profile.PerPrefill.Seconds(); x < 0.75 || x > 1.25 {
			t.Errorf("replica %d: a prompt token takes %.2f times what it does", i, x)
		}
	}
}
