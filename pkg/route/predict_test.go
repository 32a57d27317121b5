package route

import (
	"fmt"
	"slices"
	"testing"
)

// predicted plays one load on two replicas for two minutes and returns the waits at the gate over the predicted ones of
// those that were admitted after a prediction of a second or more, sorted.
func predicted(t *testing.T, times float64, request func(i int) *Request) (p *plant, ratios []float64) {
	r := newRouter(2, Default())
	p = newPlant(t, r, 5)
	p.seen = func(d *Decision) {
		if d.Predicted().Seconds() >= 1 {
			ratios = append(ratios, d.Wait.Seconds()/d.Predicted().Seconds())
		}
	}
	i := 0
	p.stream(times*2*capacity(r, 2000, 20), at(120), func() *Request {
		i++
		return request(i)
	})
	p.run(at(200))
	slices.Sort(ratios)
	return p, ratios
}

// Past its capacity a pool refuses at once what it cannot serve in time, and tells who waits how long. Who asks for a
// longer deadline is passed by later ones who ask for shorter, which no prediction knows: it waits longer than told.
func TestPredictedWaits(t *testing.T) {
	size := func(i int) int { return 200 + i*7919%4000 }
	for _, c := range []struct {
		name    string
		times   float64
		high    float64 // of the median
		request func(i int) *Request
	}{
		{"one size", 1.3, 1.1, func(int) *Request { return sized(2000, "", "") }},
		{"many sizes", 1.3, 1.1, func(i int) *Request { return sized(size(i), "", "") }},
		{"twice what fits", 2, 1.1, func(i int) *Request { return sized(size(i), "", "") }},
		{"tenants, half of it of one", 1.5, 1.1, func(i int) *Request { return sized(2000, "", fmt.Sprint("tenant ", i%7*i%5)) }},
		{"deadlines of 2 to 28 s", 1.5, 1.4, func(i int) *Request {
			q := sized(2000, "", "")
			q.Class.HeaderDeadline = fmt.Sprint(2+i%14*2, "s")
			return q
		}},
	} {
		p, ratios := predicted(t, c.times, c.request)
		ends := map[Outcome]int{}
		for _, of := range p.ends {
			for o, n := range of {
				ends[o] += n
			}
		}
		n := len(ratios)
		t.Logf("%s: %v; wait over predicted: p10 %.2f, p50 %.2f, p90 %.2f of %d", c.name, ends, ratios[n/10], ratios[n/2], ratios[n*9/10], n)
		if ratios[n/2] < 0.9 || ratios[n/2] > c.high || n < ends[Answered]/2 {
			t.Errorf("%s: the median of wait over predicted is %.2f, of %d", c.name, ratios[n/2], n)
		}
		if ends[Shed] < 100 || ends[Late] > ends[Shed]/8 {
			t.Errorf("%s: %v: who is late was let wait in vain", c.name, ends)
		}
	}
	if p, _ := predicted(t, 0.8, func(i int) *Request { return sized(size(i), "", "") }); p.ends["interactive"][Shed] > 0 || len(p.ends["interactive"]) != 1 {
		t.Errorf("below capacity: %v", p.ends)
	}
}

// Nothing is refused on a guess: before so many were admitted that a rate is known, whoever comes is held.
func TestNoPredictionFromNothing(t *testing.T) {
	r := newRouter(1, Default())
	fill(r, at(0))
	for i := range 2000 { // ten times what fits into 30 s
		if d := r.Route(at(0), sized(5000, "", "")); d.State != Held || d.Predicted() != 0 {
			t.Fatalf("request %d: %v, %v, predicted %v", i, d.State, d.Outcome, d.Predicted())
		}
	}
}
