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
	Name string `yaml:"name"`
	// Deadline is how long a request of the class may wait for its first token if its client asks for nothing,
	// before what its own size adds (Slack).
	Deadline time.Duration `yaml:"deadline"`
	// MaxDeadline is the most that a client may ask for; 0s is Deadline.
	MaxDeadline time.Duration `yaml:"max_deadline"`
	// Bulk holds the class back while a more urgent one waits, and from any replica with work ahead.
	Bulk bool `yaml:"bulk"`
	// SharePercent is the part of all tokens that the class gets while it is held, however much more urgent
	// work there is. 0: only what others leave.
	SharePercent int `yaml:"share_percent"`
	// MaxHeld bounds the requests of the class held in a pool, and MaxHeldBytes the bytes of their bodies, which
	// only FULL_DUPLEX_STREAMED keeps. One more is refused at once; 0 refuses whatever would have to wait.
	MaxHeld      int `yaml:"max_held"`
	MaxHeldBytes int `yaml:"max_held_bytes"`
}

// SetDefaults gives c what a class has that sets nothing: 10,000 requests held, of 512 MiB in all, so that they
// fit beside everything else in 1 GiB.
func (c *Class) SetDefaults() {
	c.MaxHeld, c.MaxHeldBytes = 10_000, 512<<20
}

// Default is two classes: somebody waits for the first, nobody for the second, which gets a twentieth all the
// same so that it never starves.
func Default() []Class {
	classes := []Class{
		{Name: "interactive", Deadline: 30 * time.Second},
		{Name: "bulk", Deadline: 5 * time.Minute, Bulk: true, SharePercent: 5},
	}
	for i := range classes {
		classes[i].SetDefaults()
	}
	return classes
}

// maxClasses bounds them: each has queues and series of metrics of its own.
const maxClasses = 64

// maxHeldBytes is 16 TiB, as the bound of body_memory is.
const maxHeldBytes = 1 << 44

// Validate returns every fault of the classes, joined; each begins with its key and a colon.
func Validate(classes []Class) error {
	var errs []error
	if len(classes) == 0 {
		errs = append(errs, errors.New("classes: at least one is needed"))
	}
	if len(classes) > maxClasses {
		errs = append(errs, fmt.Errorf("classes: %d, more than %d", len(classes), maxClasses))
	}
	seen := map[string]bool{}
	shares := 0
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
		if c.MaxDeadline < 0 || c.MaxDeadline != 0 && c.MaxDeadline < c.Deadline || c.MaxDeadline > time.Hour {
			errs = append(errs, fmt.Errorf("classes[%d].max_deadline: %v is not between the deadline %v and 1h", i, c.MaxDeadline, c.Deadline))
		}
		if c.SharePercent < 0 || c.SharePercent > 100 {
			errs = append(errs, fmt.Errorf("classes[%d].share_percent: %d is not between 0 and 100", i, c.SharePercent))
		} else if shares += c.SharePercent; shares > 100 && shares-c.SharePercent <= 100 {
			errs = append(errs, fmt.Errorf("classes[%d].share_percent: with those before it %d, more than 100", i, shares))
		}
		if c.MaxHeld < 0 || c.MaxHeld > 1_000_000 {
			errs = append(errs, fmt.Errorf("classes[%d].max_held: %d is not between 0 and 1000000", i, c.MaxHeld))
		}
		if c.MaxHeldBytes < 0 || c.MaxHeldBytes > maxHeldBytes {
			errs = append(errs, fmt.Errorf("classes[%d].max_held_bytes: %d is not between 0 and %d", i, c.MaxHeldBytes, maxHeldBytes))
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
	TrustedClass   string // from metadata that a filter before weir has set; empty: none
	HeaderClass    string // the client's x-weir-class; a repeated header arrives joined by commas
	HeaderDeadline string // x-weir-deadline; of a repeated one the shortest counts
}

// Result is a request's class, an index into the classes, and its deadline.
type Result struct {
	Class    int
	Deadline time.Duration // of the wait for the first token
	Asked    bool          // the client asked for it; else the request's own size may add to it (Slack)
}

// Classify decides. The trusted class, else the first, bounded by the route's; the client's header may make it
// less urgent, and of several classes there the least urgent counts. A route's deadline bounds the class's; the
// client's is taken up to the most that both allow. An unknown class is none, and so is a deadline that is not a
// positive duration.
func Classify(classes []Class, in Input) Result {
	c := max(urgency(classes, in.TrustedClass), urgency(classes, in.RouteClass), 0)
	for name := range strings.SplitSeq(in.HeaderClass, ",") {
		c = max(c, urgency(classes, strings.TrimSpace(name)))
	}
	base := classes[c].Deadline
	most := max(base, classes[c].MaxDeadline)
	if d, ok := duration(in.RouteDeadline); ok {
		base, most = min(base, d), min(most, d)
	}
	asked := false
	for text := range strings.SplitSeq(in.HeaderDeadline, ",") {
		if d, ok := duration(strings.TrimSpace(text)); ok {
			most, asked = min(d, most), true
		}
	}
	if asked {
		base = most
	}
	return Result{Class: c, Deadline: base, Asked: asked}
}

func duration(text string) (d time.Duration, ok bool) {
	if text == "" {
		return 0, false // an error costs an allocation, and most requests say nothing
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d > 0
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

// Slack is how many times its own expected prefill time a request may wait beyond its class's deadline, so that a
// giant prompt does not outrank small ones by arriving first. 10 is shortest first with an aging of 0.1 s
// per second waited, the middle between shortest first and first come (DESIGN.md 4).
const Slack = 10
