package extproc

import (
	"sync"
	"time"
)

// A hold that Envoy ends at message_timeout looks to weir like any client that leaves: a context that is cancelled. Only
// the time tells. From cutEarly of message_timeout on, as weir's clock starts after Envoy's, to cutLate after it, for a
// busy machine, it counts as Envoy's; one that came later had its override accepted.
const (
	cutEarly = 0.95
	cutLate  = 500 * time.Millisecond
	// cutEvery bounds the log: a misconfigured filter cuts every hold.
	cutEvery = time.Minute
)

// cuts counts the holds that Envoy cut since the last line in the log.
type cuts struct {
	mu     sync.Mutex
	n      int
	logged time.Time
}

// isCut reports whether a hold that was cancelled after so long was cut by Envoy.
func (s *Server) isCut(held time.Duration) bool {
	mt := s.MessageTimeout
	return mt > 0 && held.Seconds() >= cutEarly*mt.Seconds() && held <= mt+cutLate
}

// logCut counts a hold that Envoy cut, and says so once in cutEvery; least is what max_message_timeout must be.
func (s *Server) logCut(now time.Time, least time.Duration) {
	s.cuts.mu.Lock()
	s.cuts.n++
	n := s.cuts.n
	due := s.cuts.logged.IsZero() || now.Sub(s.cuts.logged) >= cutEvery
	if due {
		s.cuts.n, s.cuts.logged = 0, now
	}
	s.cuts.mu.Unlock()
	if due {
		s.log.Error("Envoy ends holds at message_timeout: where it fails open they go past the gate. It ignores weir's override unless max_message_timeout of the ext_proc filter is at least that long",
			"held_cut", n, "message_timeout", s.MessageTimeout, "max_message_timeout_needed", least)
	}
}
