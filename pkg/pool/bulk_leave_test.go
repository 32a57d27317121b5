package pool

import (
	"math"
	"testing"
)

// longWaits is the share of requests that wait for longer than a mean service time in M/M/c, by the textbook's sums.
func longWaits(c int, load float64) float64 {
	if load >= float64(c) {
		return 1
	}
	term, sum := 1.0, 0.0
	for k := 1; k <= c; k++ {
		sum += term
		term *= load / float64(k)
	}
	queue := term * float64(c) / (float64(c) - load)
	return queue / (sum + queue) * math.Exp(load-float64(c))
}

// The replicas that are left to interactive requests are as few as serve them.
func TestBulkLeavesAsFewAsServe(t *testing.T) {
	seen := map[int]bool{}
	for load := 0.05; load < 8; load += 0.0371 {
		p := newBulkPool(8, plain)
		p.rate(at(0), load)
		left := 8 - p.BulkReplicas(at(0))
		if seen[left] = true; left < 7 && longWaits(left, load) > 0.01 {
			t.Errorf("load %v: of %d replicas left %v wait long", load, left, longWaits(left, load))
		}
		if left > 1 && longWaits(left-1, load) <= 0.01 {
			t.Errorf("load %v: %d replicas are left where %d serve", load, left, left-1)
		}
	}
	if len(seen) != 6 { // 2 to 7: one alone takes less than counts as present
		t.Errorf("left were %v replicas", seen)
	}
}
