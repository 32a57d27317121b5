package pool

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func newBulkPool(n int, cfg Config) *Pool {
	endpoints := make([]string, n)
	for i := range endpoints {
		endpoints[i] = fmt.Sprint(i)
	}
	return New("p", endpoints, cfg)
}

// rate brings the interactive load to so many prefill seconds a second, and charges nothing.
func (p *Pool) rate(now time.Time, load float64) { p.interactive.add(now, load*bulkMemory) }

func TestBulkReplicas(t *testing.T) {
	for _, c := range []struct {
		n    int
		rate float64 // rhoI*N
		want int
	}{
		{1, 0, 1}, {1, 0.004, 1}, {1, 0.5, 1}, {1, 3, 1},
		{2, 0, 2}, {2, 0.0099, 2}, {2, 0.0101, 1}, {2, 0.9, 1}, {2, 5, 1},
		{8, 0, 8}, {8, 0.039, 8}, // under 0.005 of each
		{8, 0.041, 6}, // one replica takes 0.0265 alone
		{8, 0.3, 6}, {8, 0.4, 5}, {8, 0.8, 5},
		{8, 1.2, 4}, // about 15 requests a second of 2,000 tokens, half of them cached, on 32B
		{8, 3.3, 2}, // 40 of them
		{8, 4.2, 1}, {8, 7, 1}, {8, 100, 1},
		{512, 0, 512}, {512, 10, 498}, {512, 500, 7}, {512, 511, 1},
	} {
		p := newBulkPool(c.n, plain)
		p.rate(at(0), c.rate)
		if got := p.BulkReplicas(at(0)); got != c.want {
			t.Errorf("%d replicas with a load of %v: k is %d, want %d", c.n, c.rate, got, c.want)
		}
		if got := p.BulkReplicas(at(-1)); got != c.want {
			t.Errorf("%d replicas, time went back: k is %d, want %d", c.n, got, c.want)
		}
	}
}

// Ten requests a second of 800 tokens at 200 us with a step of 10 ms each are a load of 1.7; only interactive ones count;
// without any the load falls by e in ten seconds, and k follows.
func TestInteractiveLoad(t *testing.T) {
	cfg := plain
	cfg.Seats = 1 << 20
	p := newBulkPool(8, cfg)
	now := 0.0
	for i := range 1000 {
		now = float64(i) / 10
		var a, b Lease
		p.Charge(at(now), &a, p.Replicas[i%8], Load{Prompt: 5000, Uncached: 800})
		p.Charge(at(now), &b, p.Replicas[i%8], Load{Prompt: 5000, Uncached: 5000, Bulk: true})
		a.Release(at(now), true)
		b.Release(at(now), true)
	}
	if got := p.interactive.read(at(now)); math.Abs(got-1.7) > 0.02 {
		t.Errorf("load %v, want 1.7", got)
	}
	for _, c := range []struct {
		after float64
		want  int
	}{{0, 3}, {1, 4}, {8, 5}, {25, 6}, {37, 6}, {38, 8}} { // 1.7*exp(-3.75) is 0.04
		if got := p.BulkReplicas(at(now + c.after)); got != c.want {
			t.Errorf("k is %d %v s after the last, want %d", got, c.after, c.want)
		}
	}
}

// BulkGrows names the time: k passes n right after it and not before.
func TestBulkGrows(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 64} {
		for _, load := range []float64{0, 0.001, 0.011, 0.1, 0.5, 1, 7, 100} {
			p := newBulkPool(n, plain)
			p.rate(at(0), load)
			for other := range n {
				d := p.BulkGrows(at(0), other)
				if k := p.BulkReplicas(at(0)); (d == 0) != (k > other) {
					t.Errorf("%d replicas, load %v: k is %d, and passes %d in %v", n, load, k, other, d)
				}
				if k := p.BulkReplicas(at(0).Add(d - time.Microsecond)); d > 0 && k > other {
					t.Errorf("%d replicas, load %v: k is %d before it passes %d in %v", n, load, k, other, d)
				}
				if k := p.BulkReplicas(at(0).Add(d + time.Microsecond)); k <= other {
					t.Errorf("%d replicas, load %v: k is %d after it passes %d in %v", n, load, k, other, d)
				}
			}
		}
	}
}

func TestBulkDrains(t *testing.T) {
	p := newBulkPool(4, plain)
	wants := func(now float64, r, elsewhere int, d float64) {
		t.Helper()
		if n := p.BulkElsewhere(at(now), p.Replicas[r]); n != elsewhere {
			t.Errorf("at %v s %d replicas but %d hold bulk, want %d", now, n, r, elsewhere)
		}
		got, ok := p.BulkDrains(at(now), p.Replicas[r])
		if ok != (d >= 0) || ok && math.Abs(got.Seconds()-d) > 1e-6 {
			t.Errorf("at %v s bulk but on %d drains in %v, %v, want %v s", now, r, got, ok, d)
		}
	}
	charge := func(now float64, r int, tokens float64, bulk bool) *Lease {
		l := &Lease{}
		p.Charge(at(now), l, p.Replicas[r], Load{Prompt: tokens, Uncached: tokens, Bulk: bulk})
		return l
	}
	wants(0, 0, 0, -1)
	charge(0, 0, 1000, false)
	first := charge(0, 0, 1000, true) // 5,000 tokens a second: in 0.4 s
	charge(0, 0, 1000, false)
	wants(0, 0, 0, -1)
	wants(0, 1, 1, 0.4)
	second := charge(0, 1, 1500, true)
	wants(0, 2, 2, 0.3)
	wants(0, 1, 1, 0.4)
	wants(0.35, 2, 1, 0.05)
	second.Release(at(0.36), true) // was prefilled
	third := charge(0.36, 2, 800, true)
	fourth := charge(0.36, 2, 100, true)
	wants(0.36, 3, 2, 0.04)
	first.Release(at(0.37), false)
	wants(0.37, 3, 1, 0.17)
	fourth.Release(at(0.37), true) // ends before it is prefilled: 800 are ahead of nobody's bulk
	wants(0.37, 3, 1, 0.15)
	third.Release(at(0.37), false)
	wants(0.37, 3, 0, -1)
	charge(1, 3, 50_000, true) // ten seconds, of which three are believed
	wants(1, 0, 1, -1)
	wants(60, 0, 1, -1)
}

// arrived is bulk of so many seconds.
type arrived struct {
	at      time.Time
	seconds float64
}

// step is the tokens that a request takes beside its own: of a step, if it is interactive, bulk of 0.005 s a second came for
// each replica of four in the mean of the last ten seconds, and none waits whose step it shares.
func (s *slowReplica) step(now time.Time, q Load, bulks *[]arrived) float64 {
	token := s.cfg.PerPromptToken.Seconds()
	if q.Bulk {
		*bulks = append(*bulks, arrived{now, q.Uncached * token})
		return 0
	}
	s.advance(now)
	load, waiting := 0.0, 0
	for _, b := range *bulks {
		load += b.seconds / 10 * math.Exp(-now.Sub(b.at).Seconds()/10)
	}
	for _, l := range s.live {
		if l.left > 0 {
			waiting++
		}
	}
	if load < 0.005*4 || waiting > 1 {
		return 0
	}
	return s.decode() / s.prefill()
}

// unprefilled counts the replicas that hold bulk; sure is false when floats may say otherwise of one.
func unprefilled(now time.Time, all []*slowReplica) (n int, sure bool) {
	sure = true
	for _, s := range all {
		s.advance(now)
		left := 0.0
		for _, l := range s.live {
			if l.bulk {
				left = max(left, l.left)
			}
		}
		if left > 0 {
			n++
		}
		sure = sure && (left == 0 || left > 1e-6)
	}
	return n, sure
}

// residue reports whether a lease is all but prefilled: floats may say that it is.
func residue(p *Pool) bool {
	for _, r := range p.Replicas {
		if r.oldest != nil && r.oldest.left < 1e-6 {
			return true
		}
	}
	return false
}

// The count of replicas that hold unprefilled bulk is that of the slow sums, however leases come, drain and end.
func TestBulkAgreesWithSlowSums(t *testing.T) {
	const n = 4
	compared := map[int]int{}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 4))
		cfg, _ := Default([]string{"8B", "32B", "70B"}[seed%3])
		p := newBulkPool(n, cfg)
		slow := make([]*slowReplica, n)
		for i := range slow {
			slow[i] = &slowReplica{cfg: cfg, tokens: -1, kv: -1}
		}
		live := make([][]pair, n)
		var bulks []arrived
		now := epoch
		for step := range 400 {
			now = now.Add(time.Duration(rng.ExpFloat64() * 1e8 * float64(rng.IntN(4))))
			i := rng.IntN(n)
			switch k := rng.IntN(10); {
			case k < 5 && len(live[i]) < 12:
				q := Load{Prompt: 1 + 20_000*rng.Float64(), Output: 1000 * rng.Float64(), Bulk: rng.IntN(2) == 0}
				q.Uncached = max(1, q.Prompt*rng.Float64())
				l, step := &Lease{}, slow[i].step(now, q, &bulks)
				p.Charge(now, l, p.Replicas[i], q)
				s := slow[i].charge(now, q)
				s.left += step
				live[i] = append(live[i], pair{l, s})
			case k < 9 && len(live[i]) > 0:
				j, answered := rng.IntN(len(live[i])), rng.IntN(2) == 0
				live[i][j].fast.Release(now, answered)
				slow[i].release(now, live[i][j].slow, answered)
				live[i] = slices.Delete(live[i], j, j+1)
			default:
				m := Sample{At: now, Tokens: float64(step / 20), HasTokens: true}
				p.Replicas[i].Observe(now, m)
				slow[i].observe(now, m)
			}
			if rng.IntN(3) == 0 { // else the counts stand where the last event left them
				continue
			}
			want, sure := unprefilled(now, slow[:n-1])
			got := p.BulkElsewhere(now, p.Replicas[n-1])
			if compared[want]++; sure && got != want && !residue(p) {
				t.Fatalf("seed %d step %d: %d replicas hold bulk, want %d", seed, step, got, want)
			}
		}
		for i := range live {
			for _, l := range live[i] {
				l.fast.Release(now, true)
			}
			if r := p.Replicas[i]; r.bulk != 0 || r.oldest != nil {
				t.Fatalf("seed %d: %d bulk leases in the backlog of an idle replica", seed, r.bulk)
			}
		}
	}
	for want := range n {
		if compared[want] < 100 {
			t.Errorf("only %d times %d replicas held bulk: too tame (%v)", compared[want], want, compared)
		}
	}
}
