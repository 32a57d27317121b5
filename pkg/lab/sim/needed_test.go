package sim

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/workload"
)

// asking reads what a router says it needs, when the first request after a time comes.
type asking struct {
	workload.Source
	sim   *Sim
	after time.Duration
	sum   float64
	n     int
	every time.Duration
}

// Next implements workload.Source.
func (a *asking) Next() (*workload.Request, bool) {
	q, ok := a.Source.Next()
	if ok && q.At > a.after {
		a.after += a.every
		if s, ok := a.sim.Knee(0); ok {
			a.sum += float64(s.Needed.Replicas)
			a.n++
		}
	}
	return q, ok
}

// neededOn runs a workload made for its usual replicas on n, and returns the p99 of TTFT and the mean of what weir says it needs.
func neededOn(t *testing.T, name string, load float64, n int) (p99, needed float64) {
	t.Helper()
	w, err := workload.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	const length = 4 * time.Minute
	stages, err := w.Stages(workload.Params{Rate: load, Seed: 1, Length: length})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Profile: profile(t, w.Profile), Replicas: n, Routers: 1, Policy: "weir", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	a := &asking{Source: stages[0].Source, sim: s, after: 2 * time.Minute, every: 20 * time.Second}
	r, err := s.Run(a, Span{Warmup: 2 * time.Minute, Until: length})
	if err != nil {
		t.Fatal(err)
	}
	return r.TTFTP99, a.sum / float64(a.n)
}

// TestNeededIsTheLeast: what weir says that it needs is the least number of replicas with a p99 below 1 s, within one, told from
// far above that number and from below it.
func TestNeededIsTheLeast(t *testing.T) {
	for _, c := range []struct {
		name  string
		load  float64
		least int // by sweep, five minutes
	}{{"W3", 6, 5}, {"W5-35", 20, 4}} {
		for _, n := range []int{c.least - 1, c.least, c.least + 3} {
			p99, needed := neededOn(t, c.name, c.load, n)
			if (p99 <= 1) != (n >= c.least) {
				t.Errorf("%s at %v/s: with %d replicas p99 is %v s, but %d are the least", c.name, c.load, n, p99, c.least)
			}
			if needed < float64(c.least)-1 || needed > float64(c.least)+1.25 {
				t.Errorf("%s at %v/s: %d replicas say that %v are needed, %d are", c.name, c.load, n, needed, c.least)
			}
		}
	}
}
