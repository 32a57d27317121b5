package pool

import "testing"

// Those who wait for a replica, and a lack of seats or KV there, make it dearer for who comes after, and change nothing
// that decides whether it is below its knee.
func TestBehind(t *testing.T) {
	cfg := plain
	cfg.Seats = 2
	for _, c := range []struct {
		name    string
		leases  int
		waiting int
		kv      float64
		want    float64 // seconds
	}{
		{"idle", 0, 0, 0, 0},
		{"a free seat", 1, 0, 0, 0},
		{"the last seat is taken", 2, 0, 0, 1 * 100 * 0.01 / 2},
		{"and one waits", 2, 1, 0, 2*100*0.01/2 + 1000*0.0002},
		{"a free seat and two wait", 1, 2, 0, 2*100*0.01 + 2000*0.0002},
		{"KV is full", 1, 0, 1, 1 * 100 * 0.01},
		{"KV is more than full", 1, 0, 1.5, (1 + 0.5/1.5) * 100 * 0.01},
	} {
		p := New("p", []string{"10.0.0.1:8000"}, cfg)
		r := p.Replicas[0]
		for range c.leases {
			p.Charge(at(0), &Lease{}, r, Load{Prompt: 1, Uncached: 1, Output: 100})
		}
		r.Observe(at(0), Sample{At: at(0), KV: c.kv, HasKV: true})
		before := r.View(at(0))
		for range c.waiting {
			p.Queue(r, 1000)
		}
		views, _ := p.Views(at(0))
		if d, pf := views[0].Step, views[0].Prefill; !near(d, 0.01) || !near(pf, 0.0002) {
			t.Fatalf("a step of %v s and %v s per token: the figures below are for others", d, pf)
		}
		if got := views[0].Behind + views[0].Place(); !near(got, c.want) {
			t.Errorf("%s: Behind %v, want %v", c.name, got, c.want)
		}
		views[0].Behind, views[0].Seat, views[0].Room = 0, 0, 0
		if views[0] != before {
			t.Errorf("%s: the view is %+v, alone %+v", c.name, views[0], before)
		}
		p.Unqueue()
		if views, _ := p.Views(at(0)); views[0].Behind > c.want || c.waiting > 0 && views[0].Behind == c.want {
			t.Errorf("%s: Behind %v after Unqueue", c.name, views[0].Behind)
		}
	}
}
