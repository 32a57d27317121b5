package pool

import (
	"math"
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
	longest  float64 // prompt since then, or to come then
	tokens   float64 // the last counter seen; -1: none
	kv       float64 // the last scrape's gauge; -1: none
	scraped  time.Time
	log      []verdict // of health, since the last success
}

type slowLease struct {
	u, prompt, out float64
	n              float64 // answers, of which as many as context says have its prompt
	context        float64
	left           float64
	counted        bool // by a KV gauge
	bulk           bool
	trial          bool // the one that tries a failing replica
	at             time.Time
}

func (s *slowReplica) trial() *slowLease {
	for _, l := range s.live {
		if l.trial {
			return l
		}
	}
	return nil
}

func (s *slowReplica) success(now time.Time) {
	s.progress, s.log, s.longest = now, nil, s.toCome()
	for _, l := range s.live {
		l.trial = false
	}
}

// toCome is the longest prompt that is not yet computed.
func (s *slowReplica) toCome() (longest float64) {
	for _, l := range s.live {
		if l.left >= 1 {
			longest = max(longest, l.u)
		}
	}
	return longest
}

// stalled: silence of three seconds, and then of three more or four times the longest prompt that came since, or was
// to come then. A failing replica's begins anew with its trial.
func (s *slowReplica) stalled(now time.Time) bool {
	last, trial := s.progress, s.trial()
	if failing, _ := s.health(); len(s.live) == 0 || failing && trial == nil {
		return false
	}
	if trial != nil && trial.at.After(last) {
		last = trial.at
	}
	return now.Sub(last).Seconds() > 3+max(3, 4*s.longest*s.prefill())
}

func (s *slowReplica) decode() float64 {
	d := s.cfg.Step.Seconds()
	for _, l := range s.live {
		d += l.n*s.cfg.PerSequence.Seconds() + s.cfg.PerContextToken.Seconds()*l.context
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
		s.progress, s.longest = now, 0
	}
	s.longest = max(s.longest, q.Uncached)
	l := &slowLease{u: q.Uncached, left: q.Uncached, prompt: q.Prompt, out: q.Output, n: 1, bulk: q.Bulk, at: now}
	if l.context = q.Prompt + q.Output/2; q.Answers > 0 {
		l.n, l.context = q.Answers, q.Prompt*q.Answers/q.Prompts+q.Output/2
	}
	failing, _ := s.health()
	l.trial = failing && s.trial() == nil
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
		s.success(now)
	}
}

// computed is what is held of a live lease's prompt: what was not to be computed, and what has drained.
func (s *slowReplica) computed(now time.Time, l *slowLease) float64 {
	if failing, _ := s.health(); failing || s.stalled(now) {
		return 0
	}
	s.advance(now)
	return l.prompt - l.u + (l.u - l.left)
}

func (s *slowReplica) observe(now time.Time, m Sample) {
	s.advance(now)
	s.log = append(s.log, verdict{at: now, read: true})
	s.scraped, s.kv = m.At, -1
	if m.HasKV {
		s.kv = m.KV
		for _, l := range s.live {
			l.counted = true
		}
	}
	if m.HasTokens {
		if m.Tokens != s.tokens {
			s.success(now)
		} else if s.stalled(now) {
			s.log = append(s.log, verdict{at: now, two: true})
		}
		s.tokens = m.Tokens
	}
}

func (s *slowReplica) view(now time.Time, pinned int) View {
	s.advance(now)
	v := View{Step: s.decode(), Prefill: s.prefill()}
	failing, until := s.health()
	v.Down = failing && (now.Before(until) || s.trial() != nil)
	sent, seats := 0.0, float64(s.cfg.Seats)
	for _, l := range s.live {
		seats -= l.n
		v.Backlog += l.left
		if !l.counted {
			sent += l.u + l.out
		}
	}
	v.Free = seats > 0
	v.Wait = v.Backlog * v.Prefill
	v.Tau = max(0.5, 2*(float64(s.cfg.Chunk)*s.cfg.PerPromptToken.Seconds()+v.Step))
	blocks := float64(s.cfg.KVTokens / chain.BlockTokens)
	v.KV = float64(pinned) / blocks
	if s.kv >= 0 && now.Sub(s.scraped) < 3*time.Second {
		v.KV = s.kv + sent/(blocks*chain.BlockTokens)
	}
	return v
}

func sameView(a, b View) bool {
	close := func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }
	return close(a.Backlog, b.Backlog) && close(a.Wait, b.Wait) && close(a.Step, b.Step) &&
		close(a.Prefill, b.Prefill) && close(a.Tau, b.Tau) && close(a.KV, b.KV) && a.Free == b.Free && a.Down == b.Down
}

// pair is one lease in both models, and its blocks in the index.
type pair struct {
	fast *Lease
	slow *slowLease
}

func TestLoadAgreesWithSlowSums(t *testing.T) {
	down, stalls := 0, 0
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
			switch k := rng.IntN(11); {
			case k < 4 && len(live) < 25:
				// Fractions, so that sums round and an idle replica is zero only if it is made so.
				q := Load{Prompt: 1 + 30_000*rng.Float64(), Output: 1000 * rng.Float64()}
				if q.Uncached = max(1, q.Prompt*rng.Float64()); rng.IntN(3) == 0 {
					q.Prompts = float64(1 + rng.IntN(3))
					q.Answers = q.Prompts * float64(1+rng.IntN(4))
				}
				p := pair{&Lease{}, nil}
				r.charge(now, p.fast, q)
				p.slow = slow.charge(now, q)
				live = append(live, p)
			case k < 7 && len(live) > 0:
				i := rng.IntN(len(live))
				answered := rng.IntN(2) == 0
				if got, want := live[i].fast.Computed(now), slow.computed(now, live[i].slow); math.Abs(got-want) > 1e-6*want {
					t.Fatalf("seed %d step %d: %v of %v tokens are computed, want %v", seed, step, got, live[i].slow.prompt, want)
				}
				live[i].fast.Release(now, answered)
				slow.release(now, live[i].slow, answered)
				old = append(old, live[i])
				live = slices.Delete(live, i, i+1)
			case k == 7 && len(old) > 0:
				old[rng.IntN(len(old))].fast.Release(now, true) // a late second one
			case k == 10 && seed%2 == 0: // every second one also fails
				refused := rng.IntN(3) == 0
				if refused {
					r.Refuse(now)
				} else {
					r.Fail(now)
				}
				slow.log = append(slow.log, verdict{at: now, two: refused, refused: refused})
			case k > 7:
				m := Sample{At: now, KV: rng.Float64(), HasKV: rng.IntN(3) > 0, HasTokens: rng.IntN(4) > 0}
				if m.HasTokens {
					m.Tokens = float64(step / 50)
					if slow.stalled(now) && m.Tokens == slow.tokens {
						stalls++
					}
				}
				r.Observe(now, m)
				slow.observe(now, m)
			}
			if r.View(now).Down {
				down++
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
		if r.backlog != 0 || r.context != 0 || r.output != 0 || r.fresh != 0 || r.promised != 0 || r.leases != 0 || r.sequences != 0 || r.queued != 0 || r.oldest != nil || r.newest != nil {
			t.Fatalf("seed %d: an idle replica has load: %+v", seed, r)
		}
	}
	if down < 1000 || stalls < 100 {
		t.Errorf("down at %d looks and stalled at %d: the histories are too tame", down, stalls)
	}
}
