package pool

import "time"

// verdict is one failure of a replica.
type verdict struct {
	at      time.Time
	two     bool // it counts as two
	refused bool // the connection, so that nobody tries until a page is read
	read    bool // no failure: a page was read
}

// health replays the failures by the comment of health.go: out until when, and whether it is to be tried.
func (s *slowReplica) health() (failing bool, until time.Time) {
	n, refused := 0, false
	for _, v := range s.log {
		if v.read {
			if refused {
				refused, until = false, v.at
			}
			continue
		}
		if !v.at.Before(until) {
			if v.two && n == 0 {
				n = 1
			}
			if n++; n >= 2 {
				until = v.at.Add([]time.Duration{1, 2, 4, 8, 16}[min(n-2, 4)] * time.Second)
			}
		}
		if v.refused {
			refused = true
			if late := v.at.Add(16 * time.Second); late.After(until) {
				until = late
			}
		}
	}
	return n >= 2, until
}
