package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
	"github.com/weirproxy/weir/pkg/route"
)

const (
	// scrapeEvery is the time between two scrapes of a replica: weir's own default.
	scrapeEvery = time.Second
	// MaxReplicas and MaxRouters bound what one simulation holds.
	MaxReplicas = 512
	MaxRouters  = 4
)

// Config is one simulated deployment.
type Config struct {
	Profile  step.Profile   // what routers are told that each replica is
	Each     []step.Profile // what each replica is, as many as Replicas; none: Profile, all
	Replicas int            // 1 to MaxReplicas
	Routers  int            // 1 to MaxRouters, each with a state of its own
	Past     float64        // share of requests that go past the routers, to the first replica: 0 to 1
	Policy   string
	Stale    time.Duration // from a scrape to the routers' seeing it
	Seed     uint64
	Events   []Event // in any order; those of one instant happen in theirs
}

// profile is what the replica at a place is.
func (c *Config) profile(place int) step.Profile {
	if len(c.Each) == 0 {
		return c.Profile
	}
	return c.Each[place]
}

// KVTokens is the tokens of KV memory of all replicas together.
func (c *Config) KVTokens() (sum int) {
	for i := range c.Replicas {
		sum += c.profile(i).KVTokens
	}
	return sum
}

// Sim is replicas and routers, and the time that they have reached. Not safe for concurrent use.
type Sim struct {
	cfg      Config
	replicas []*step.Replica
	routers  []policy.Router
	now      time.Duration
	agenda   *agenda
	rng      *rand.Rand
	scrapes  [][]scrape // of each replica, on their way to the routers
	fates    []fate     // of each replica
	events   []Event    // that are yet to happen, in order
	live     map[*step.Seq]*job
	open     int // requests that have not ended
	ceiling  ceiling
	done     []*policy.Call
	run      *run
	err      error
}

// job is one request in the simulation.
type job struct {
	policy.Call
	router   int
	owner    policy.Router // what stood there when it came
	index    int           // in the order of arrival, of this run
	at       time.Duration // intended arrival
	measured bool
	known    int // tokens of the prompt that one cache for all holds
}

type scrape struct {
	at      time.Duration // when routers see it
	stats   step.Stats
	refused bool // nobody listens there
}

// validate reports the first thing that no deployment can be.
func (c *Config) validate() error {
	if c.Replicas < 1 || c.Replicas > MaxReplicas {
		return fmt.Errorf("sim: %d replicas is not 1 to %d", c.Replicas, MaxReplicas)
	}
	if len(c.Each) != 0 && len(c.Each) != c.Replicas {
		return fmt.Errorf("sim: %d profiles for %d replicas", len(c.Each), c.Replicas)
	}
	if c.Routers < 1 || c.Routers > MaxRouters {
		return fmt.Errorf("sim: %d routers is not 1 to %d", c.Routers, MaxRouters)
	}
	if !(c.Past >= 0 && c.Past <= 1) {
		return fmt.Errorf("sim: a share of %v past the routers is not 0 to 1", c.Past)
	}
	if c.Stale < 0 {
		return fmt.Errorf("sim: gauges cannot be %v old", c.Stale)
	}
	for _, e := range c.Events {
		if err := c.check(e); err != nil {
			return err
		}
	}
	return nil
}

// New makes idle replicas with empty caches, and routers that have seen nothing.
func New(cfg Config) (*Sim, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Sim{
		fates: make([]fate, cfg.Replicas), events: slices.Clone(cfg.Events),
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x51b)), live: map[*step.Seq]*job{},
		scrapes: make([][]scrape, cfg.Replicas), ceiling: newCeiling(cfg),
	}
	s.routers = make([]policy.Router, cfg.Routers, cfg.Routers+1)
	if cfg.Past > 0 {
		s.routers = append(s.routers, past{})
	}
	s.agenda = newAgenda(3*cfg.Replicas + len(s.routers) + 2)
	for i := range cfg.Replicas {
		r, err := step.New(cfg.profile(i))
		if err != nil {
			return nil, err
		}
		s.replicas = append(s.replicas, r)
		s.agenda.set(s.scraper(i), time.Duration(s.rng.Int64N(int64(scrapeEvery))))
	}
	for i := range cfg.Routers {
		if err := s.newRouter(i); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(s.events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	s.absent(s.events)
	s.happen()
	return s, nil
}

// The actors, in the order in which those of one instant act: replicas, scrapes that reach the routers, scrapes,
// the routers' timers, what befalls them, and the arrivals.
func (s *Sim) delivery(replica int) int { return s.cfg.Replicas + replica }
func (s *Sim) scraper(replica int) int  { return 2*s.cfg.Replicas + replica }
func (s *Sim) timer(router int) int     { return 3*s.cfg.Replicas + router }
func (s *Sim) fate() int                { return 3*s.cfg.Replicas + len(s.routers) }
func (s *Sim) arrivals() int            { return s.fate() + 1 }

// Span is the part of a run that is measured.
type Span struct {
	Warmup time.Duration // arrivals before it are sent, not measured
	Until  time.Duration // no arrivals after it, those of sessions included; 0: all that the source has
}

// Run sends what src has and returns when all of it has ended. A later Run goes on where this one ended.
func (s *Sim) Run(src workload.Source, span Span) (*Result, error) {
	s.run = newRun(s, src, span)
	s.agenda.set(s.arrivals(), s.run.next())
	for s.err == nil && (s.open > 0 || s.run.next() != never) {
		actor, at := s.agenda.first()
		s.now = at
		s.act(actor)
	}
	if s.err == nil {
		s.err = s.conserve()
	}
	if s.err != nil {
		return nil, s.err
	}
	return s.run.result(), nil
}

// Estimates is what the router at a place has learned; ok is false if it is not weir.
func (s *Sim) Estimates(router int) (route.Estimates, bool) {
	return policy.Estimates(s.now, s.routers[router])
}

// Knee is where its replicas stand to their knees; ok is false if it is not weir.
func (s *Sim) Knee(router int) (route.Knee, bool) { return policy.Knee(s.now, s.routers[router]) }

// act lets one actor act, now.
func (s *Sim) act(actor int) {
	n := s.cfg.Replicas
	switch {
	case actor < n:
		s.step(actor)
	case actor < 2*n:
		s.deliver(actor - n)
	case actor < 3*n:
		s.scrape(actor - 2*n)
	case actor == s.fate():
		s.happen()
	case actor < s.fate():
		s.release(actor - 3*n)
	default:
		s.arrive(s.run.take())
		s.agenda.set(s.arrivals(), s.run.next())
	}
}
