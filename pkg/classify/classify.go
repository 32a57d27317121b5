// Package classify gives a request its priority class and its deadline.
//
// Who may use a class: the route's class is a ceiling, and a client's header may lower it, never raise it.
// What nobody declared is the default. All of a client's words are bounded here: what comes out is an index
// and a duration.
package classify

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Class is one priority class. Classes are ordered, the most urgent first.
type Class struct {
	Name string `yaml:"name" json:"name"`
	// Deadline is the longest that a request of the class may wait for its first token, before what its own
	// size adds (Slack); a client may ask for less.
	Deadline time.Duration `yaml:"deadline" json:"deadline"`
	// Bulk holds the class back while a more urgent one waits, and from any replica with work ahead.
	Bulk bool `yaml:"bulk" json:"bulk"`
}

// Default is two classes: somebody waits for the first, nobody for the second.
func Default() []Class {
	return []Class{
		{Name: "interactive", Deadline: 30 * time.Second},
		{Name: "bulk", Deadline: 5 * time.Minute, Bulk: true},
	}
}

// Validate returns every fault of the classes, joined; each begins with its key and a colon.
func Validate(classes []Class) error {
	var errs []error
	if len(classes) == 0 {
		errs = append(errs, errors.New("classes: at least one is needed"))
	}
	seen := map[string]bool{}
	for i, c := range classes {
		switch {
		case c.Name == "" || len(c.Name) > 63 || strings.Trim(c.Name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
			errs = append(errs, fmt.Errorf("classes[%d].name: %q is not 1 to 63 of a-z, 0-9, - and _", i, c.Name))
		case seen[c.Name]:
			errs = append(errs, fmt.Errorf("classes[%d].name: %q stands twice", i, c.Name))
		}
		seen[c.Name] = true
		if c.Deadline <= 0 || c.Deadline > time.Hour {
			errs = append(errs, fmt.Errorf("classes[%d].deadline: %v is not between 0 and 1h", i, c.Deadline))
		}
		if i == 0 && c.Bulk {
			errs = append(errs, errors.New("classes[0].bulk: the first class is the default and the most urgent: it cannot be bulk"))
		}
	}
	return errors.Join(errs...)
}

// Input is what a request says about itself, and what its route says about it.
type Input struct {
	RouteClass     string // the route's gRPC metadata weir-class; empty: no ceiling
	RouteDeadline  string // weir-deadline, a Go duration such as 10s
	HeaderClass    string // the client's x-weir-class; a repeated header arrives joined by commas
	HeaderDeadline string // x-weir-deadline
}

// Result is a request's class, an index into the classes, and its base deadline.
type Result struct {
	Class    int
	Deadline time.Duration
}

// Classify decides. Of several classes in one header the least urgent counts. An unknown class is none; a
// deadline that is not a positive duration is none, and the shortest of those given counts.
func Classify(classes []Class, in Input) Result {
	c := max(urgency(classes, in.RouteClass), 0)
	for name := range strings.SplitSeq(in.HeaderClass, ",") {
		c = max(c, urgency(classes, strings.TrimSpace(name)))
	}
	d := classes[c].Deadline
	for _, text := range []string{in.RouteDeadline, in.HeaderDeadline} {
		if text == "" {
			continue // an error costs an allocation, and most requests say nothing
		}
		if given, err := time.ParseDuration(text); err == nil && given > 0 {
			d = min(d, given)
		}
	}
	return Result{Class: c, Deadline: d}
}

// urgency returns the index of the class of that name, -1 for none.
func urgency(classes []Class, name string) int {
	for i := range classes {
		if classes[i].Name == name {
			return i
		}
	}
	return -1
}

// Slack is how many times its own expected prefill time a request may wait beyond its base deadline, so that a
// giant prompt does not outrank small ones by arriving first. 10 is shortest first with an aging of 0.1 s
// per second waited, the middle between shortest first and first come (DESIGN.md 4).
const Slack = 10
