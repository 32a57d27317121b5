package pool

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// poolOf is a pool of n replicas of the 8B profile.
func poolOf(n int) *Pool {
	cfg, _ := Default("8B")
	var endpoints []string
	for i := range n {
		endpoints = append(endpoints, fmt.Sprint(i))
	}
	return New("p", endpoints, cfg)
}

// ask has requests come at rate for two minutes, each with so many uncached tokens, of which every send-th is sent and ends two
// seconds later.
func ask(p *Pool, rate, tokens float64, send int) Needed {
	rng := rand.New(rand.NewPCG(1, 1))
	now := 0.0
	leases := make([]Lease, 4096)
	ends := make([]float64, len(leases))
	for i := 0; now < 120; i++ {
		now += rng.ExpFloat64() / rate
		p.Arrived(at(now), false)
		for k := range leases {
			if leases[k].live && ends[k] <= now {
				leases[k].Release(at(now), true)
			}
		}
		if i%send == 0 {
			k := i / send % len(leases)
			p.Charge(at(now), &leases[k], p.Replicas[i/send%len(p.Replicas)], Load{Prompt: tokens, Uncached: tokens, Output: 50})
			ends[k] = now + 2
		}
	}
	return p.Needed(at(now))
}

// The number follows what arrives, whatever is sent of it and on how many replicas; nothing needs one, and memory counts where
// it is what lacks.
func TestNeeded(t *testing.T) {
	if got := poolOf(3).Needed(at(0)); got.Replicas != 1 {
		t.Errorf("before any request %+v", got)
	}
	if got := New("p", nil, plain).Needed(at(0)); got.Replicas != 1 {
		t.Errorf("without replicas %+v", got)
	}
	one := ask(poolOf(8), 5, 2000, 1)
	if one.Replicas != 1 || one.Arrivals < 0.7 || one.Arrivals > 1.4 || one.Services > 0.1 {
		t.Errorf("a third of a replica: %+v", one)
	}
	for _, n := range []int{4, 8, 16} {
		for _, send := range []int{1, 3} {
			if got := ask(poolOf(n), 50, 2000, send); got.Replicas != 4 || got.ForTime != got.Replicas {
				t.Errorf("%d replicas, each %d. sent: of 2.8 replicas of prefill, and the steps, %+v, want 4", n, send, got)
			}
		}
	}
	p := poolOf(4)
	ask(p, 30, 2000, 2)
	for _, r := range p.Replicas {
		p.Observe(at(120), r, Sample{At: at(120), KV: 0.99, HasKV: true, Running: 1, HasRunning: true, HasWaiting: true})
	}
	if got := p.Needed(at(120)); got.ForKV < 6 || got.Replicas != got.ForKV || got.KV < 7.5 {
		t.Errorf("with all memory in use by half of what comes %+v", got)
	}
	if got := p.Needed(at(120 + 3600)); got.Replicas != 1 {
		t.Errorf("an hour later %+v", got)
	}
}

func TestLeast(t *testing.T) {
	for _, want := range []int{1, 2, 7, 4095, maxNeeded} {
		if got := least(func(n int) bool { return n >= want }); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
	if got := least(func(int) bool { return false }); got != maxNeeded {
		t.Errorf("of none %d", got)
	}
}

// TestNeededInAnOutage: while nothing can be sent for some minutes, as when all replicas hang with their memory nearly full, what
// comes says what is needed, and not how long ago something was sent.
func TestNeededInAnOutage(t *testing.T) {
	cfg, _ := Default("8B")
	p := New("p", []string{"a", "b", "c", "d"}, cfg)
	for now := 0.0; now < 900; now += 0.1 {
		p.Arrived(at(now), false)
		r := p.Replicas[int(now*10)%4]
		if now < 300 {
			var l Lease
			p.Charge(at(now), &l, r, Load{Prompt: 1000, Uncached: 1000, Output: 200})
			l.Release(at(now), true)
		}
		p.Observe(at(now), r, Sample{At: at(now), KV: 0.9, HasKV: true})
		if n := p.Needed(at(now)); now > 60 && n.Replicas > 20 {
			t.Fatalf("%.0f s: %+v", now, n)
		}
	}
}
