package route

import (
	"time"

	"github.com/weirproxy/weir/pkg/gate"
	"github.com/weirproxy/weir/pkg/pick"
)

// policy is a Config in force, which never changes: another one takes its place.
type policy struct {
	Config
	rule pick.Rule
}

// set puts a Config in force for requests that come from now on.
func (r *Router) set(cfg Config) *policy {
	p := &policy{Config: cfg, rule: cfg.Pick.Rule()}
	r.policy.Store(p)
	return p
}

// Configure swaps the Config, a valid one, for another. Requests that are held keep the class and the deadline with which
// they came; a class that is no more takes nobody, and is gone when it holds nobody. Release is due after it.
func (r *Router) Configure(now time.Time, cfg Config) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.set(cfg)
	r.gate.Configure(now, p.gate(), p.knee())
}

// knee reports whether a request waits for its replica to be below it.
func (p *policy) knee() bool { return p.Rule == BelowKnee && p.Queue != NoQueue }

// gate is the classes as the gate is told of them. Where nobody waits, nobody is held back as bulk.
func (p *policy) gate() []gate.Class {
	var classes []gate.Class
	for _, c := range p.Classes {
		classes = append(classes, gate.Class{
			Name: c.Name, Bulk: c.Bulk && p.Queue != NoQueue, Deadline: c.Deadline, Most: c.MaxHeld, Bytes: int64(c.MaxHeldBytes),
			Share: float64(c.SharePercent) / 100,
		})
	}
	return classes
}
