package pool

import (
	"math/rand/v2"
	"testing"
)

// TestOneJumpTeachesNoRates: a counter that jumps once, by a bug of the replica or a clock that is set, leaves the rates within
// a few percent. One that goes back without a restart neither hides the prompts that were computed.
func TestOneJumpTeachesNoRates(t *testing.T) {
	for name, jump := range map[string]func(now int, s *Sample){
		"computed":            func(now int, s *Sample) { s.Computed += 1e15 },
		"gaps":                func(now int, s *Sample) { s.InterToken.Count += 1e15 },
		"their sum, an epoch": func(now int, s *Sample) { s.InterToken.Sum += 1.7e9 },
		"their sum, a day":    func(now int, s *Sample) { s.InterToken.Sum += 86400 },
		"computed goes back": func(now int, s *Sample) {
			if now%5 == 0 {
				s.Computed -= 9000
			}
		},
	} {
		cfg, _ := Default("8B")
		p := New("p", []string{"a"}, cfg)
		r := p.Replicas[0]
		var l Lease
		r.charge(at(0), &l, Load{Prompt: 4000, Uncached: 1, Output: 2000})
		d := &decoder{rates: ratesOf(t, "8B"), rng: rand.New(rand.NewPCG(1, 2)), started: 1000}
		for now := 1; now < 300; now++ {
			s := d.second(float64(now), 5000)
			if now >= 60 {
				jump(now, &s)
			}
			p.Observe(at(float64(now)), r, s)
			if x := r.rates.Token / d.rates.Token; x < 0.85 || x > 1.15 {
				t.Errorf("%s, %d s: a prompt token takes %.2f times what it does", name, now, x)
				break
			}
			if x := r.rates.Decode(25, 125_000) / d.rates.Decode(25, 125_000); x < 0.85 || x > 1.15 {
				t.Errorf("%s, %d s: a step takes %.2f times what it does", name, now, x)
				break
			}
		}
	}
}

// TestRequestsOfJumpFitTheirMemory: what a request has a replica compute is no more than its memory, however far a counter
// jumps: it is the backlog of each request of others that waits there.
func TestRequestsOfJumpFitTheirMemory(t *testing.T) {
	p := New("p", []string{"a"}, plain)
	r := p.Replicas[0]
	page := func(now, computed float64) {
		p.Observe(at(now), r, Sample{
			At: at(now), Computed: computed, HasComputed: true, InterToken: Summary{100 * now, now, true}, TTFT: Summary{now, now, true},
			Running: 4, HasRunning: true, Waiting: 2, HasWaiting: true,
		})
	}
	for now := 1.0; now < 10; now++ {
		page(now, 1000*now)
	}
	page(10, 1e15)
	page(11, 1e15+1000)
	if most := 2 * r.kvTokens; r.theirs > most {
		t.Errorf("two that wait have %.3g tokens computed, their memory is %.3g", r.theirs, most)
	}
}
