package route

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/classify"
	"github.com/weirproxy/weir/pkg/pick"
	"github.com/weirproxy/weir/pkg/prompt"
)

// Config is what the spine is told, beside the pool.
type Config struct {
	// Pick is what replicas are balanced on and what draws a request to one.
	Pick pick.Config `yaml:",inline"`
	// Queue is the order of those who wait.
	//
	//	priority_classes + deadlines   by class, flow and deadline; late ones are refused
	//	priority_classes               by class, flow and arrival
	//	fifo                           by arrival alone, nobody is bulk
	//	none                           nobody waits
	Queue string `yaml:"queue"`
	// Rule is when a request waits: "keep each replica just below its knee", or "none", when only bulk does.
	Rule string `yaml:"rule"`
	// Classes are the priority classes, the most urgent first. The first is the default.
	Classes []classify.Class `yaml:"classes"`
	// ToolsPosition is where the chat templates of models put the tools, by the name that requests give the model:
	// first, after_system, which those not named here have, or before_last_user.
	ToolsPosition map[string]prompt.ToolsPosition `yaml:"tools_position"`
	// MaxHold bounds the wait of every class, up to an hour. Envoy's max_message_timeout and
	// stream_idle_timeout must be longer.
	MaxHold time.Duration `yaml:"max_hold"`
}

// Default is two classes, held for at most five minutes, the deadline of bulk.
func Default() Config {
	return Config{
		Pick: pick.Default(), Queue: ClassesDeadlines, Rule: BelowKnee,
		Classes: classify.Default(), MaxHold: 5 * time.Minute,
	}
}

// Validate returns every fault of c, joined; each begins with its key and a colon.
func (c Config) Validate() error {
	errs := []error{c.Pick.Validate(), c.validateIntent(), classify.Validate(c.Classes)}
	for _, model := range slices.Sorted(maps.Keys(c.ToolsPosition)) {
		if err := c.ToolsPosition[model].Validate(); err != nil {
			errs = append(errs, fmt.Errorf("tools_position.%s: %w", model, err))
		}
	}
	if c.MaxHold <= 0 || c.MaxHold > time.Hour {
		errs = append(errs, fmt.Errorf("max_hold: %v is not between 0 and 1h", c.MaxHold))
	}
	return errors.Join(errs...)
}

// HeldBytes is the most bytes of bodies that are held in a pool at once. By arrival all are of the first class, and nobody is
// bulk; without a rule only bulk waits.
func (c Config) HeldBytes() (sum int) {
	for i, class := range c.Classes {
		if c.Queue == NoQueue || c.Queue == FIFO && (i > 0 || c.Rule == NoRule) {
			continue
		}
		if c.Rule != NoRule || class.Bulk {
			sum += class.MaxHeldBytes
		}
	}
	return sum
}

// The values of Config.Queue and Config.Rule.
const (
	ClassesDeadlines = "priority_classes + deadlines"
	Classes          = "priority_classes"
	FIFO             = "fifo"
	NoQueue          = "none"
	BelowKnee        = "keep each replica just below its knee"
	NoRule           = "none"
)

// validateIntent returns the faults of the spine's own two lines of intent.
func (c Config) validateIntent() error {
	var errs []error
	switch c.Queue {
	case ClassesDeadlines, Classes, FIFO, NoQueue:
	default:
		errs = append(errs, fmt.Errorf("queue: %q is none of %s, %s, %s, %s", c.Queue, ClassesDeadlines, Classes, FIFO, NoQueue))
	}
	switch c.Rule {
	case BelowKnee, NoRule:
	default:
		errs = append(errs, fmt.Errorf("rule: %q is none of %s, %s", c.Rule, BelowKnee, NoRule))
	}
	return errors.Join(errs...)
}
