package route

import (
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/weirproxy/weir/pkg/gate"
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
	for _, c := range r.gate.Stats(now, 0, nil) {
		s.Held[c.Class] = c.Held
	}
	for _, at := range r.pool.Replicas {
		s.Replicas = append(s.Replicas, at.Stats(now))
	}
	return s
}

// Estimates is what a router has learned, as /debug/estimates shows it.
type Estimates struct {
	Pool          string             `json:"pool"`
	Own           float64            `json:"own"`             // the share of what the replicas run that this router sent
	BytesPerToken float64            `json:"bytes_per_token"` // of all prompts
	Texts         []pool.TextStats   `json:"texts"`           // by model
	Output        float64            `json:"output_tokens"`   // expected of an answer
	Outputs       []pool.OutputStats `json:"outputs"`         // by class and model
	Truth         []pool.TruthStats  `json:"truth"`           // predicted against actual
	Replicas      []pool.Estimates   `json:"replicas"`
}

// Estimates describes what is learned at now.
func (r *Router) Estimates(now time.Time) Estimates {
	e := r.estimates(now)
	for i := range e.Outputs { // not in the critical section
		e.Outputs[i].Rank()
	}
	return e
}

func (r *Router) estimates(now time.Time) Estimates {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := Estimates{
		Pool: r.pool.Name, Own: r.pool.Own(), BytesPerToken: r.pool.BytesPerToken(), Texts: r.pool.Texts(now),
		Output: r.pool.Output(), Outputs: r.pool.Outputs(now), Truth: r.pool.Truth(),
	}
	for _, at := range r.pool.Replicas {
		e.Replicas = append(e.Replicas, at.Estimates(now))
	}
	return e
}

// Knee is where a router's replicas stand to their knees, as /debug/knee shows it.
type Knee struct {
	Pool string `json:"pool"`
	Held int    `json:"held"` // requests at the gate
	pool.Knee
}

// Knee describes the knees at now.
func (r *Router) Knee(now time.Time) Knee {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Knee{Pool: r.pool.Name, Held: r.gate.Len(), Knee: r.pool.Knee(now)}
}

// GateStats is a router's gate as /debug/gate shows it.
type GateStats struct {
	Pool    string       `json:"pool"`
	Classes []ClassStats `json:"classes"` // the most urgent first
}

// ClassStats is one priority class at the gate.
type ClassStats struct {
	gate.Stats
	Heads []Head `json:"heads"` // the first of them, in the order in which they go
}

// Head is a request that is among the next to go, and what it waits for.
type Head struct {
	Flow      string  `json:"flow,omitempty"` // the last 8 hex digits of its xxhash64: a tenant's name may be a secret, such as a key
	Tokens    float64 `json:"tokens"`
	Waited    float64 `json:"waited_seconds"`
	Left      float64 `json:"deadline_seconds"` // until it is refused
	Predicted float64 `json:"predicted_wait_seconds,omitempty"`
	Replica   string  `json:"replica"` // its best, for which it waits
	Why       string  `json:"waits_for"`
}

// flowMark tells flows apart without showing them.
func flowMark(flow string) string {
	if flow == "" {
		return ""
	}
	return fmt.Sprintf("%08x", uint32(xxhash.Sum64String(flow)))
}

// GateStats describes the gate at now, with the first so many of each class.
func (r *Router) GateStats(now time.Time, heads int) GateStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first [][]Head
	all := r.gate.Stats(now, heads, func(class int, t *gate.Ticket, at *pool.Replica, why gate.Why) {
		for len(first) <= class {
			first = append(first, []Head{})
		}
		first[class] = append(first[class], Head{
			Flow: flowMark(t.Flow), Tokens: t.Tokens, Waited: now.Sub(t.Owner.(*Decision).Arrived).Seconds(),
			Left: t.Deadline.Sub(now).Seconds(), Predicted: t.Predicted.Seconds(), Replica: at.Endpoint, Why: why.String(),
		})
	})
	s := GateStats{Pool: r.pool.Name}
	for i, c := range all {
		s.Classes = append(s.Classes, ClassStats{c, []Head{}})
		if i < len(first) {
			s.Classes[i].Heads = first[i]
		}
	}
	return s
}
