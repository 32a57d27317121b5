package extproc

import (
	"sync"
	"time"
)

// Timer is what an ext_proc filter of Envoy's runs for each message in BUFFERED. It ends a hold unless weir can extend
// it.
type Timer struct {
	Message time.Duration // message_timeout
	Most    time.Duration // max_message_timeout: Envoy ignores an override that is longer; 0: any
}

// A hold that Envoy ends at message_timeout looks to weir like any client that leaves: a context that is cancelled. It
// counts as Envoy's where the filter ignores weir's override, and the time fits: from cutEarly of message_timeout on, as
// weir's clock starts after Envoy's, to cutLate after it, for a busy machine.
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

// cutBy returns the timer that ended a hold which was cancelled after so long, though weir had asked for override; nil
// if none did.
func (s *Server) cutBy(held, override time.Duration) *Timer {
	for i := range s.timers {
		t := &s.timers[i]
		if override > t.Most && t.Message > 0 && held.Seconds() >= cutEarly*t.Message.Seconds() && held <= t.Message+cutLate {
			return t
		}
	}
	return nil
}

// logCut counts a hold that Envoy cut, and says so once in cutEvery; least is what max_message_timeout must be.
func (s *Server) logCut(now time.Time, by *Timer, least time.Duration) {
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
			"held_cut", n, "message_timeout", by.Message, "max_message_timeout", by.Most, "max_message_timeout_needed", least)
	}
}
