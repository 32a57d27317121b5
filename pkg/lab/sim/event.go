package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is what happens to a replica or a router.
type Kind string

// The kinds. A replica that joins and did not die before was not there from the start.
const (
	Die     Kind = "die"     // a replica: what it runs is lost, and it refuses connections
	Join    Kind = "join"    // a replica: it serves, with an empty cache and counters at zero
	Slow    Kind = "slow"    // a replica: it runs at that share of its speed
	Mute    Kind = "mute"    // a replica: its metrics cannot be read
	Freeze  Kind = "freeze"  // a replica: its metrics stay as they are
	Restart Kind = "restart" // a router: all that it knew is gone, and those that it held are refused
)

var kinds = []Kind{Die, Join, Slow, Mute, Freeze, Restart}

// All stands for every replica or router.
const All = -1

// Event is one change of a deployment while it is in use.
type Event struct {
	Kind   Kind
	Target int           // replica or router from 0 up, or All
	Speed  float64       // of Slow: above 0, 1 is the profile's own
	At     time.Duration // since New
}

// ParseEvents reads a list of events, KIND:TARGET@TIME with commas between, or slow:TARGET:SPEED@TIME. A target is a number
// from 0 up or "all", a time what time.ParseDuration reads: die:2@300s,slow:1:0.5@0s,mute:all@100s,restart:0@5m.
func ParseEvents(text string) (events []Event, err error) {
	for item := range strings.SplitSeq(text, ",") {
		e, err := parseEvent(item)
		if err != nil {
			return nil, fmt.Errorf("event %q: %w", item, err)
		}
		events = append(events, e)
	}
	return events, nil
}

func parseEvent(item string) (e Event, err error) {
	what, when, ok := strings.Cut(item, "@")
	if e.At, err = time.ParseDuration(when); !ok || err != nil || e.At < 0 {
		return e, fmt.Errorf("no time from 0 up behind an @")
	}
	parts := strings.Split(what, ":")
	if e.Kind = Kind(parts[0]); !slices.Contains(kinds, e.Kind) {
		return e, fmt.Errorf("%q is none of %v", parts[0], kinds)
	}
	want := 2
	if e.Kind == Slow {
		want = 3
	}
	if len(parts) != want {
		return e, fmt.Errorf("%d parts before the @, want %d", len(parts), want)
	}
	if e.Target = All; parts[1] != "all" {
		if e.Target, err = strconv.Atoi(parts[1]); err != nil || e.Target < 0 {
			return e, fmt.Errorf("%q is no number from 0 up, nor \"all\"", parts[1])
		}
	}
	if e.Kind == Slow {
		if e.Speed, err = strconv.ParseFloat(parts[2], 64); err != nil || !(e.Speed > 0 && e.Speed <= 100) {
			return e, fmt.Errorf("a speed of %q is not above 0 and at most 100", parts[2])
		}
	}
	return e, nil
}

// check reports an event that the deployment has no target for.
func (c *Config) check(e Event) error {
	n := c.Replicas
	if e.Kind == Restart {
		n = c.Routers
	}
	if e.Target >= n {
		return fmt.Errorf("sim: %s of number %d, but there are %d, from 0 up", e.Kind, e.Target, n)
	}
	return nil
}

// targets are the numbers that an event means.
func (s *Sim) targets(e Event) []int {
	if e.Target != All {
		return []int{e.Target}
	}
	n := s.cfg.Replicas
	if e.Kind == Restart {
		n = s.cfg.Routers
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
