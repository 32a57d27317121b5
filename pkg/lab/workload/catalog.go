package workload

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// Info describes a workload.
type Info struct {
	Name     string
	Shape    string        // in one line
	Profile  string        // the step profile that its sizes are meant for
	Replicas int           // for which it has its published number of texts
	Loads    []float64     // requests per second of all replicas: easy, busy, and near or past the knee
	Unit     string        // what Loads and Params.Rate count, when not all requests per second
	Length   time.Duration // model time in which requests arrive
	Warm     time.Duration // requests that arrive before are left out of figures: caches fill

	stages func(Params) []Stage
}

// Params is what a workload is made from. The zero value of a field but Rate means Info's or 0.
type Params struct {
	Rate     float64 // see Info.Unit; 0.001 to 1e6
	Seed     uint64
	Replicas int           // at most 4096
	Length   time.Duration // up to 1000 h
}

// Stage is a part of a workload. The next one begins when all requests of the one before have ended; its
// times count from then.
type Stage struct {
	Rate float64 // requests per second
	Warm bool    // leave it out of figures
	Source
}

// Limits that keep times and memory in bounds; far outside what a pool of replicas sees.
const (
	minRate, maxRate = 1e-3, 1e6
	maxReplicas      = 4096
	maxLength        = 1000 * time.Hour
)

// steady is ten minutes, of which the first one fills the caches.
func steady(i Info, build func(Params) Source) Info {
	i.Length, i.Warm = 10*time.Minute, time.Minute
	i.stages = func(p Params) []Stage { return []Stage{{Rate: p.Rate, Source: build(p)}} }
	return i
}

// catalog lists all workloads. The first load is below round robin's knee, the next ones above it and below
// that of routing by prefix, where the two differ (weirlab profile tells both; weirlab sim agrees).
var catalog = []Info{
	steady(Info{Name: "W3", Shape: "b2b-saas: 150 system prompts of 6,000 tokens x 5 questions of 1,200, asked again and again",
		Profile: "32B", Replicas: 8, Loads: []float64{6, 10, 14}}, b2b.repeating),
	steady(Info{Name: "W3-fresh", Shape: "b2b-saas with a question of its own in each request",
		Profile: "32B", Replicas: 8, Loads: []float64{6, 10, 12}}, b2b.fresh),
	steady(Info{Name: "W3b", Shape: "83 system prompts of 8,000 tokens x 3 questions of 1,000, asked again and again",
		Profile: "70B", Replicas: 4, Loads: []float64{3, 4, 6}}, llama70.repeating),
	steady(Info{Name: "W3b-fresh", Shape: "W3b with a question of its own in each request",
		Profile: "70B", Replicas: 4, Loads: []float64{3, 4, 5}}, llama70.fresh),
	{Name: "b2b-ladder", Shape: "W3 as llm-d ran it: 16 bursts of 3 to 60 requests/s after a warm-up, each drained",
		Profile: "32B", Replicas: 8, Loads: []float64{1}, Unit: "times the published rates", stages: ladder},
	rag(19), rag(35), rag(47), rag(73),
	sessions("W6", "half the requests from chats, half from coding agents, each extending its own history",
		[]float64{10, 15, 19}, 0.5),
	sessions("W6-chat", "chats that extend their own history", []float64{20, 35, 45}, 1),
	sessions("W6-code", "coding agents that extend their own history", []float64{6, 9, 12}, 0),
	mixed("W7", "20 % premium and 60 % standard interactive requests, 20 % bulk"),
	backlog("W7-0", 0, 1), backlog("W7-0.5", 0.5, 1), backlog("W7-1", 1, 1), backlog("W7-2", 2, 1),
	backlog("W7-burst", 1, 13), backlog("W7-burst-0", 0, 13),
	sweep(mixed("W8", "W7 at 0.3 to 1.3 of its capacity")),
	sessions("W9", "W6-chat at half load, for replicas and routers that come and go", []float64{20}, 1),
	azure(),
}

// Names lists the workloads.
func Names() []string {
	names := make([]string, len(catalog))
	for i := range catalog {
		names[i] = catalog[i].Name
	}
	return names
}

// aliases are names for a workload that has another one.
var aliases = map[string]string{"W5": "W5-35"}

// notHere are the workloads that no generator makes, and why.
var notHere = map[string]string{"W4": "is the Mooncake trace, which is replayed from its file: -trace FILE -speed 1,1.75,2.25"}

// Listing is the names for people, with what else a workload is called.
func Listing() string {
	names := Names()
	for i, name := range names {
		for alias, of := range aliases {
			if of == name {
				names[i] = fmt.Sprintf("%s (or %s)", name, alias)
			}
		}
	}
	return strings.Join(names, ", ")
}

// Lookup returns the workload of that name, or an error that lists the names. A workload that is asked for by another
// name than its own bears that one.
func Lookup(name string) (Info, error) {
	if why, ok := notHere[name]; ok {
		return Info{}, fmt.Errorf("workload: %s %s", name, why)
	}
	for _, i := range catalog {
		if i.Name == name || i.Name == aliases[name] {
			i.Name = name
			return i, nil
		}
	}
	return Info{}, fmt.Errorf("workload: no workload %q: use one of %s", name, Listing())
}

// Stages makes the workload: one stage, except for a ladder. It reports every parameter out of bounds.
func (i Info) Stages(p Params) ([]Stage, error) {
	if p.Replicas == 0 {
		p.Replicas = i.Replicas
	}
	if p.Length == 0 {
		p.Length = i.Length
	}
	var errs []error
	if !(p.Rate >= minRate && p.Rate <= maxRate) {
		errs = append(errs, fmt.Errorf("workload: a load of %v is not between %v and %v", p.Rate, minRate, maxRate))
	}
	if p.Replicas < 1 || p.Replicas > maxReplicas {
		errs = append(errs, fmt.Errorf("workload: %d replicas are not between 1 and %d", p.Replicas, maxReplicas))
	}
	if p.Length < 0 || p.Length > maxLength {
		errs = append(errs, fmt.Errorf("workload: a length of %v is not between 0 and %v", p.Length, maxLength))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return i.stages(p), nil
}

// New makes the workload of that name at its default length. A workload of several stages is an error: use
// Info.Stages.
func New(name string, rate float64, seed uint64, replicas int) (Source, error) {
	i, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	stages, err := i.Stages(Params{Rate: rate, Seed: seed, Replicas: replicas})
	if err != nil {
		return nil, err
	}
	if len(stages) != 1 {
		return nil, fmt.Errorf("workload: %s has %d stages, each to be drained", name, len(stages))
	}
	return stages[0].Source, nil
}

// scaled is a number of texts for that many replicas, n at the default number.
func scaled(n, replicas, usual int) int {
	return max(1, int(math.Round(float64(n)*float64(replicas)/float64(usual))))
}

// InRow joins stages to one source, each beginning when the last request of the one before arrives. For
// looking at a ladder; what serves it drains each stage first.
func InRow(stages []Stage) Source {
	if len(stages) == 1 {
		return stages[0].Source
	}
	return &row{stages: stages}
}

type row struct {
	stages []Stage
	start  time.Duration // of the first one left
	last   time.Duration
}

// Next implements Source.
func (w *row) Next() (*Request, bool) {
	for len(w.stages) > 0 {
		if r, ok := w.stages[0].Next(); ok {
			r.At += w.start
			w.last = r.At
			return r, true
		}
		w.stages, w.start = w.stages[1:], w.last
	}
	return nil, false
}
