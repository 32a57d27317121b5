package route

import (
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// Stats is a router as /debug/pool shows it.
type Stats struct {
	Pool     string         `json:"pool"`
	Held     map[string]int `json:"held"` // by class
	Replicas []pool.Stats   `json:"replicas"`
}

// Stats describes the router at now.
func (r *Router) Stats(now time.Time) Stats {
	s := Stats{Pool: r.pool.Name, Held: map[string]int{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range r.cfg.Classes {
		s.Held[c.Name], _ = r.gate.Held(i)
	}
	for _, at := range r.pool.Replicas {
		s.Replicas = append(s.Replicas, at.Stats(now))
	}
	return s
}
