package gate

import (
	"testing"
	"time"
)

// When a client may come back is between now and the most, however slowly a class drains and however many were told: a
// rate that has all but decayed is no time beyond what a Duration holds.
func TestRetryIsBounded(t *testing.T) {
	for _, rate := range []float64{1e-290, 1e-12, 1e-3, 1, 1e6} {
		q := newQueue(4)
		q.over, q.stuck, q.at, q.tokens = 1, true, at(0), 1e9
		q.drain = drain{average: [2]average{{rate, 1}, {rate, 1}}, samples: minSamples}
		for i := range 1000 {
			after, ok := q.retry(at(float64(i)/1000), 1e4, time.Minute, time.Minute)
			if !ok || after < 0 || after > time.Minute {
				t.Fatalf("at %v tokens/s, after %d others: %v, %v", rate, i, after, ok)
			}
			if rate < 1 && after != time.Minute {
				t.Fatalf("at %v tokens/s a billion tokens are gone in %v", rate, after)
			}
		}
	}
}
