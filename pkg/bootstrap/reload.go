package bootstrap

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weirproxy/weir/pkg/config"
)

// Reload reads the files anew for a weir that runs with old. It returns what is to take old's place, and the keys
// of the policy that differ, none if nothing does. The error joins every fault as Load's does, or else everything that
// cannot change while weir and Envoy run, and every error that a rule finds where it found fewer in old: then nothing
// may change.
func Reload(old *Bootstrap, f Files) (*Bootstrap, []string, error) {
	in, err := f.read()
	if err != nil {
		return nil, nil, err
	}
	r, err := in.load()
	if err != nil {
		return nil, nil, err
	}
	fixed := append(r.fixedKeys(old.Policy), in.fixedPlaces(old, r)...)
	if err := errors.Join(append(append(fixed, r.fixedTimers(old)...), r.worse(old)...)...); err != nil {
		return nil, nil, err
	}
	r.Timers = old.Timers
	return &r.Bootstrap, config.Changed(old.Policy, r.Policy), nil
}

// worse are the errors of rules that find more than in old. What old had does not stop a reload: its operator may know
// better.
func (r *reading) worse(old *Bootstrap) (errs []error) {
	had := map[string]int{}
	for _, one := range old.Errors {
		had[one.Rule]++
	}
	has := map[string]int{}
	for _, one := range r.Errors {
		has[one.Rule]++
	}
	for _, one := range r.Errors {
		if has[one.Rule] > had[one.Rule] {
			errs = append(errs, one.fault())
		}
	}
	return errs
}

// fixedTimers is a max_hold that the filter allows in the file, and not as Envoy has read it.
func (r *reading) fixedTimers(old *Bootstrap) (errs []error) {
	was, now := old.Policy.Route.MaxHold+holdSlack, r.Policy.Route.MaxHold+holdSlack
	for _, t := range old.Timers {
		if was <= t.Most && t.Most < now && !slices.Contains(r.Timers, t) {
			text := fmt.Sprintf("max_hold: %v + 5s is more than max_message_timeout was when weir started, %v: %s", r.Policy.Route.MaxHold, t.Most, restartBoth)
			errs = append(errs, r.policy.key("max_hold").fault(text))
		}
	}
	return errs
}

const restartBoth = "Envoy reads its bootstrap only when it starts: restart Envoy and weir"

// why says why a key cannot change.
var why = map[string]string{
	"admin":       "the listener opens at weir's start",
	"body_limit":  "the gRPC server's receive limit is fixed at weir's start",
	"body_memory": "it stays what it was at weir's start, as body_limit does",
	"replica":     "the step model sizes the prefix indexes at weir's start",
}

// fixedKeys are the keys of the policy that differ and take effect at a start only.
func (r *reading) fixedKeys(old config.Policy) (errs []error) {
	for _, key := range config.Changed(old.Live(r.Policy), r.Policy) {
		reason := why[key]
		if reason == "" {
			reason = "it is read at weir's start"
		}
		errs = append(errs, r.policy.key(key).fault(fmt.Sprintf("%s: it changed, and %s: restart weir", key, reason)))
	}
	return errs
}

// fixedPlaces is what differs of where weir listens and of its pools. Their order, and that of endpoints, is
// nothing.
func (in input) fixedPlaces(old *Bootstrap, r *reading) (errs []error) {
	restart := restartBoth
	if in.Bootstrap == "" {
		restart = "it is read when weir starts: restart weir"
	}
	differ := func(at place, format string, args ...any) {
		errs = append(errs, at.fault(fmt.Sprintf(format, args...)+": "+restart))
	}
	if old.Listen != r.Listen {
		differ(r.listen, "weir listens on %s, not on %s", old.Listen.Address, r.Listen.Address)
	}
	was := map[string]Pool{}
	for _, p := range old.Pools {
		was[p.Name] = p
	}
	for _, p := range r.Pools {
		before, ok := was[p.Name]
		delete(was, p.Name)
		switch {
		case !ok:
			differ(r.pools[p.Name], "pool %q is new", p.Name)
		case !slices.Equal(sorted(before.Endpoints), sorted(p.Endpoints)):
			differ(r.pools[p.Name], "the endpoints of pool %q changed", p.Name)
		}
	}
	for _, p := range old.Pools {
		if _, gone := was[p.Name]; gone {
			differ(r.all, "pool %q is gone", p.Name)
		}
	}
	return errs
}

func sorted(all []string) []string { return slices.Sorted(slices.Values(all)) }
