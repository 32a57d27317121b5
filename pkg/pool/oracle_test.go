package pool

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
)

// slowReplica is a replica's load as DESIGN.md, section 4, states it, summed anew over its live leases at each
// look.
type slowReplica struct {
	cfg      Config
	live     []*slowLease // in order of charge
	at       time.Time
	progress time.Time
	tokens   float64 // the last counter seen; -1: none
	kv       float64 // the last scrape's gauge; -1: none
	scraped  time.Time
}

type slowLease struct {
	u, prompt, out float64
	left           float64
	counted        bool // by a KV gauge
}

func (s *slowReplica) decode() float64 {
	d := s.cfg.Step.Seconds()
	for _, l := range s.live {
		d += s.cfg.PerSequence.Seconds() + s.cfg.PerContextToken.Seconds()*(l.prompt+l.out/2)
	}
	return d
}

func (s *slowReplica) prefill() float64 {
	return s.cfg.PerPromptToken.Seconds() + s.decode()/float64(s.cfg.Chunk)
}

// advance drains the oldest lease first, for the time in which the replica is believed to work.
func (s *slowReplica) advance(now time.Time) {
	end := now
	if limit := s.progress.Add(3 * time.Second); end.After(limit) {
		end = limit
	}
	n := end.Sub(s.at).Seconds() / s.prefill()
	s.at = now
	for _, l := range s.live {
		if part := min(n, l.left); part > 0 {
			l.left -= part
			n -= part
		}
	}
}

func (s *slowReplica) charge(now time.Time, q Load) *slowLease {
	s.advance(now)
	if len(s.live) == 0 {
		s.progress = now
	}
	l := &slowLease{u: q.Uncached, left: q.Uncached, prompt: q.Prompt, out: q.Output}
	s.live = append(s.live, l)
	return l
}

func (s *slowReplica) release(now time.Time, l *slowLease, answered bool) {
	s.advance(now)
	i := slices.Index(s.live, l)
	if i < 0 {
		return
	}
	s.live = slices.Delete(s.live, i, i+1)
	if answered {
		s.progress = now
	}
}

func (s *slowReplica) observe(now time.Time, m Sample) {
	s.advance(now)
	s.scraped, s.kv = m.At, -1
	if m.HasKV {
		s.kv = m.KV
		for _, l := range s.live {
			l.counted = true
		}
	}
	if m.HasTokens {
		if m.Tokens != s.tokens {
			s.progress = now
		}
		s.tokens = m.Tokens
	}
}

func (s *slowReplica) view(now time.Time, pinned int) View {
	s.advance(now)
	v := View{Decode: s.decode(), Prefill: s.prefill(), Free: len(s.live) < s.cfg.Seats}
	sent := 0.0
	for _, l := range s.live {
		v.Backlog += l.left
		if !l.counted {
			sent += l.u + l.out
		}
	}
	v.Wait = v.Backlog * v.Prefill
	v.Tau = max(0.5, 2*(float64(s.cfg.Chunk)*s.cfg.PerPromptToken.Seconds()+v.Decode))
	blocks := float64(s.cfg.KVTokens / chain.BlockTokens)
	v.KV = float64(pinned) / blocks
	if s.kv >= 0 && now.Sub(s.scraped) < 3*time.Second {
		v.KV = s.kv + sent/(blocks*chain.BlockTokens)
	}
	return v
}

func sameView(a, b View) bool {
	close := func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }
	return close(a.Backlog, b.Backlog) && close(a.Wait, b.Wait) && close(a.Decode, b.Decode) &&
		close(a.Prefill, b.Prefill) && close(a.Tau, b.Tau) && close(a.KV, b.KV) && a.Free == b.Free
}

// pair is one lease in both models, and its blocks in the index.
type pair struct {
	fast *Lease
	slow *slowLease
}

func TestLoadAgreesWithSlowSums(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		cfg, _ := Default([]string{"8B", "32B", "70B"}[seed%3])
		cfg.Seats = 1 + rng.IntN(20)
		r := New("p", []string{"a"}, cfg).Replicas[0]
		slow := &slowReplica{cfg: cfg, tokens: -1, kv: -1}
		var live, old []pair
		now := epoch
		for step := range 500 {
			now = now.Add(time.Duration(rng.ExpFloat64() * 1e8 * float64(rng.IntN(8))))
			switch k := rng.IntN(10); {
			case k < 4 && len(live) < 25:
				// Fractions, so that sums round and an idle replica is zero only if it is made so.
				q := Load{Prompt: 1 + 30_000*rng.Float64(), Output: 1000 * rng.Float64()}
				q.Uncached = max(1, q.Prompt*rng.Float64())
				p := pair{&Lease{}, nil}
				r.charge(now, p.fast, q)
				p.slow = slow.charge(now, q)
				live = append(live, p)
			case k < 7 && len(live) > 0:
				i := rng.IntN(len(live))
				answered := rng.IntN(2) == 0
				live[i].fast.Release(now, answered)
				slow.release(now, live[i].slow, answered)
				old = append(old, live[i])
				live = slices.Delete(live, i, i+1)
			case k == 7 && len(old) > 0:
				old[rng.IntN(len(old))].fast.Release(now, true) // a late second one
			case k > 7:
				m := Sample{At: now, KV: rng.Float64(), HasKV: rng.IntN(3) > 0, HasTokens: rng.IntN(4) > 0}
				if m.HasTokens {
					m.Tokens = float64(step / 50)
				}
				r.Observe(now, m)
				slow.observe(now, m)
			}
			look := now.Add(time.Duration(rng.IntN(1e9)))
			if got, want := r.View(now), slow.view(now, 0); !sameView(got, want) {
				t.Fatalf("seed %d step %d: View = %+v, want %+v", seed, step, got, want)
			}
			if rng.IntN(2) == 0 {
				if got, want := r.View(look), slow.view(look, 0); !sameView(got, want) {
					t.Fatalf("seed %d step %d: View ahead = %+v, want %+v", seed, step, got, want)
				}
				now = look // the slow one has moved there
			}
		}
		rng.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
		for _, p := range live {
			p.fast.Release(now, true)
		}
		if r.backlog != 0 || r.context != 0 || r.output != 0 || r.sent != 0 || r.leases != 0 || r.oldest != nil || r.newest != nil {
			t.Fatalf("seed %d: an idle replica has load: %+v", seed, r)
		}
	}
}
