package pool

import (
	"math"
	"testing"
)

// What is beside a lease's tokens in V drains before them, so that it is never taken for something computed.
func TestComputedIsWhatIsSurelyDrained(t *testing.T) {
	r := New("p", []string{"a"}, plain).Replicas[0]
	r.unsure = 0.2
	var l Lease
	p := &Pool{Replicas: []*Replica{r}, rates: r.common}
	p.Charge(at(0), &l, r, Load{Prompt: 1500, Uncached: 1000, Output: 10, Bulk: true})
	if l.left <= 1100 {
		t.Fatalf("%v tokens in V, nothing beside 1,000", l.left)
	}
	beside := l.left - 1000
	for _, c := range []struct{ drained, want float64 }{{0, 500}, {beside, 500}, {beside + 400, 900}, {beside + 1000, 1500}, {5000, 1500}} {
		now := at(c.drained * r.prefill)
		if got := l.Computed(now); math.Abs(got-c.want) > 0.01 {
			t.Errorf("%v tokens drained: %v computed, want %v", c.drained, got, c.want)
		}
	}
	l.Release(at(1), true)
	if got := l.Computed(at(1)); got != 0 {
		t.Errorf("%v computed for a lease that is over", got)
	}
}
