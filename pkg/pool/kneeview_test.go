package pool

import (
	"math"
	"testing"

	"github.com/weirproxy/weir/pkg/knee"
)

// TestKneeView: what people see of a knee is what the gate goes by, the waits are those of the queue that the traffic makes,
// and what cannot be told is not.
func TestKneeView(t *testing.T) {
	cfg := plain
	cfg.Learn = true
	p := New("p", []string{"a", "b"}, cfg)
	k := p.Knee(at(0))
	if k.Wait.Measured != nil || k.Wait.ErlangC != nil || k.Wait.AllenCunneen != nil || k.Wait.Gate != 0 || len(k.Replicas) != 2 {
		t.Errorf("before anything: %+v", k)
	}
	r := p.Replicas[0]
	if got := k.Replicas[0]; !got.StaleGauges || got.RatesAge != nil || !got.Below || got.Saturation != 0 || got.Seats != r.seats {
		t.Errorf("before anything: %+v", got)
	}
	for s := 1.0; s <= 9; s++ {
		p.Observe(at(s), r, working(s, 5, 0))
	}
	leases := make([]Lease, 200)
	now := 10.0
	for i := range leases { // two a second, each of the same work
		now += 0.5
		p.Arrived(at(now), false)
		p.Charge(at(now), &leases[i], p.Replicas[i%2], Load{Prompt: 100, Uncached: 100, Output: 10})
		leases[i].Release(at(now+0.4), true)
	}
	p.Waited(0, 1)
	waits := p.Knee(at(now)).Wait
	x := p.demand.read(at(now))
	var full Lease
	p.Charge(at(now), &full, r, Load{Prompt: 1e6, Uncached: 1e6, Output: 10})
	k = p.Knee(at(now))
	got, v := k.Replicas[0], r.View(at(now))
	if got.Below || v.Below() || got.Saturation != v.Wait/v.Tau || got.Saturation < 1 || got.Leases != 1 || got.Prefill != v.Prefill {
		t.Errorf("full: %+v, view %+v", got, v)
	}
	if got.RatesAge == nil || math.Abs(*got.RatesAge-(now-9)) > 1e-6 {
		t.Errorf("rates of age %v, want %v", got.RatesAge, now-9)
	}
	if !k.Replicas[1].Below {
		t.Errorf("idle: %+v", k.Replicas[1])
	}
	if waits.Gate != workGain {
		t.Errorf("gate wait %v, want %v", waits.Gate, workGain)
	}
	if waits.ErlangC == nil || math.Abs(*waits.ErlangC-knee.QueueWait(2, x.time/p.Own(), x.time/x.rate)) > 1e-12 {
		t.Errorf("Erlang C %v", waits.ErlangC)
	} else if waits.AllenCunneen == nil || !(*waits.AllenCunneen < *waits.ErlangC) { // it comes evenly, and takes alike
		t.Errorf("Allen and Cunneen %v, Erlang C %v", waits.AllenCunneen, *waits.ErlangC)
	}
	if k.Wait.ErlangC != nil {
		t.Errorf("Erlang C %v where more comes than fits", *k.Wait.ErlangC)
	}
}
