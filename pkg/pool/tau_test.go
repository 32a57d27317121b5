package pool

import (
	"testing"
	"time"
)

// TestTau: a knee that is set stays where it is whatever runs, and one that is not is the step model's, which moves with D.
func TestTau(t *testing.T) {
	for _, c := range []struct {
		set  time.Duration
		want float64 // seconds; 0: the step model's
	}{{0, 0}, {100 * time.Millisecond, 0.1}, {time.Hour, 3600}} {
		cfg, _ := Default("32B")
		cfg.MaxBacklog = c.set
		p := New("p", []string{"10.0.0.1:8000"}, cfg)
		for range 3 {
			v := p.Replicas[0].View(at(0))
			want := c.want
			if want == 0 {
				want = cfg.Rates().Tau(v.Step)
			}
			if !near(v.Tau, want) || v.Below() != (v.Wait < want) {
				t.Errorf("max_backlog %v: tau %v, want %v; a wait of %v is below: %v", c.set, v.Tau, want, v.Wait, v.Below())
			}
			p.Charge(at(0), new(Lease), p.Replicas[0], Load{Prompt: 20_000, Uncached: 20_000, Output: 100})
		}
	}
}

// TestMaxKVPercent: with half of the KV cache usable, half of it in use is all, by the gauge and by what was sent since.
func TestMaxKVPercent(t *testing.T) {
	cfg := plain
	cfg.MaxKVPercent = 50
	r := New("p", []string{"a"}, cfg).Replicas[0]
	r.Observe(at(0), Sample{At: at(0), KV: 0.4, HasKV: true})
	if v := r.View(at(0)); v.Used != 0.8 || !v.Below() {
		t.Errorf("in use %v, below its knee %v at 0.4 of the cache", v.Used, v.Below())
	}
	var l Lease
	r.charge(at(0), &l, Load{Prompt: 1, Uncached: r.kvTokens / 10, Output: 1})
	if v := r.View(at(0)); v.Used < 1-1e-9 {
		t.Errorf("in use %v with a tenth of the cache more", v.Used)
	}
	r.Observe(at(2), Sample{At: at(2), KV: 0.5, HasKV: true})
	if v := r.View(at(2)); v.Used != 1 || v.Below() {
		t.Errorf("in use %v, below its knee %v at 0.5 of the cache", v.Used, v.Below())
	}
}
