package sim

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// watched is a Router that counts what is in flight on each replica.
type watched struct {
	policy.Router
	live   []int
	peak   int
	picked func(q *workload.Request, slot int) // before the pick counts
}

func watch(s *Sim) *watched {
	w := &watched{Router: s.routers[0], live: make([]int, len(s.replicas)), picked: func(*workload.Request, int) {}}
	s.routers[0] = w
	return w
}

func (w *watched) Arrive(now time.Duration, c *policy.Call) bool {
	due := w.Router.Arrive(now, c)
	if c.State == policy.Sent {
		w.sent(c)
	}
	return due
}

func (w *watched) Release(now time.Duration, done []*policy.Call) []*policy.Call {
	n := len(done)
	done = w.Router.Release(now, done)
	for _, c := range done[n:] {
		if c.State == policy.Sent {
			w.sent(c)
		}
	}
	return done
}

func (w *watched) sent(c *policy.Call) {
	w.picked(c.Req, c.Slot)
	w.live[c.Slot]++
	w.peak = max(w.peak, w.live[c.Slot])
}

func (w *watched) End(now time.Duration, c *policy.Call) bool {
	w.live[c.Slot]--
	return w.Router.End(now, c)
}

// hotPrompt is a source in which a share of the requests has one first part in common, and the others nothing.
type hotPrompt struct {
	groups
	share float64
	alone map[*workload.Request]bool // the others
}

// hotTokens is the part that they share.
const hotTokens = 2000

func newHotPrompt(share, rate float64, requests int) *hotPrompt {
	g := newGroups(1, rate, requests)
	g.n, g.shared, g.output = 1, hotTokens, 120
	return &hotPrompt{groups: *g, share: share, alone: map[*workload.Request]bool{}}
}

func (h *hotPrompt) Next() (*workload.Request, bool) {
	q, ok := h.groups.Next()
	if ok && h.rng.Float64() >= h.share {
		h.alone[q] = true
		for i := range q.Blocks {
			q.Blocks[i] = mix(q.Blocks[i] ^ uint64(len(h.alone))<<40)
		}
	}
	return q, ok
}

// hotPicks is what the picks for a hotPrompt have come to.
type hotPicks struct {
	*watched
	hot       map[int]bool // replicas that hold the prompt
	most      int          // requests at once
	strangers int          // of the others that joined a replica at work
	spilt     int          // of the prompt's that left its replicas and did so
}

func countPicks(w *watched, src *hotPrompt) *hotPicks {
	p := &hotPicks{watched: w, hot: map[int]bool{}}
	w.picked = func(q *workload.Request, slot int) {
		open := 1
		for _, n := range w.live {
			open += n
		}
		p.most = max(p.most, open)
		joins := w.live[slot] > 0 && q.At > time.Second // before, no scrape has told that the caches are cold, and homes count
		switch {
		case src.alone[q] && joins:
			p.strangers++
		case !src.alone[q] && !p.hot[slot] && joins:
			p.spilt++
		}
		if !src.alone[q] {
			p.hot[slot] = true
		}
	}
	return p
}

// kubeai-project/kubeai PR#519, PR#528: with fewer requests than replicas a bound on their load rounds to nothing, every
// replica looks over it, and all fall back to the one that holds the prompt of a third of the traffic. 300 replicas, from
// none to some 200 requests at once:
//
//	what overflows from those that hold the prompt goes to an idle replica, and so does whatever has nothing in common
//	with it, as long as there is one;
//	nobody waits behind others for the prompt for longer than computing it elsewhere takes.
//
// Those that are past their prompts stay together, as decoding has no price in a pick (DESIGN.md 4): a token takes up to
// twice as long as alone in the mean, and they are on more than one replica.
func TestHotPromptOnManyReplicas(t *testing.T) {
	for _, share := range []float64{0.25, 0.4} {
		cfg := config(policy.Weir, 1)
		cfg.Replicas = 300
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		src := newHotPrompt(share, 165, 6000)
		p := countPicks(watch(s), src)
		r, err := s.Run(src, Span{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v: %d at once, %d at most on one of %d replicas that hold the prompt; TTFT p99 %.3f s, TPOT %.1f ms", share, p.most, p.peak, len(p.hot), r.TTFTP99, 1000*r.TPOTMean)
		if p.most < 180 {
			t.Fatalf("%d at once: the test is too weak", p.most)
		}
		if p.strangers+p.spilt > 0 {
			t.Errorf("%v: %d of others, and %d of the hot prompt's that left its replicas, joined one at work with 100 idle", share, p.strangers, p.spilt)
		}
		if alone := cfg.Profile.StepTime(1, hotTokens, 0).Seconds(); r.TPOTMean > 2*alone || len(p.hot) < 2 {
			t.Errorf("%v: TPOT %.1f ms, alone %.1f; %d replicas hold the prompt", share, 1000*r.TPOTMean, 1000*alone, len(p.hot))
		}
		cold := float64(cfg.Profile.API+cfg.Profile.StepTime(1, 0, hotTokens+src.own)) / 1e9
		if r.TTFTP99 > 1.25*cold {
			t.Errorf("%v: TTFT p99 %.3f s, where an idle replica computes the whole prompt in %.3f", share, r.TTFTP99, cold)
		}
	}
}

// othersHits is the hit rate from 21 s on of eight replicas without the first, by their own counting, and the most requests
// that ever wait on the first.
func othersHits(t *testing.T, events string) (share, hottest float64) {
	t.Helper()
	cfg := config(policy.Weir, 1)
	cfg.Replicas = 8
	if events != "" {
		cfg.Events, _ = ParseEvents(events)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	before := make([]step.Stats, 8)
	watch(s).picked = func(q *workload.Request, slot int) {
		if before[1].Steps == 0 && q.At > 21*time.Second {
			for i, r := range s.replicas {
				before[i] = r.Stats()
			}
		}
		hottest = max(hottest, float64(s.replicas[0].Stats().Waiting))
	}
	if _, err := s.Run(newGroups(1, 60, 3600), Span{}); err != nil {
		t.Fatal(err)
	}
	var prompt, cached int64
	for i, r := range s.replicas[1:] {
		st := r.Stats()
		prompt, cached = prompt+st.Prompt-before[1+i].Prompt, cached+st.Cached-before[1+i].Cached
	}
	t.Logf("%q: %.0f wait on replica 0 at most, hits on the others %.1f %%", events, hottest, 100*float64(cached)/float64(prompt))
	return float64(cached) / float64(prompt), hottest
}

// vllm-project/router PR#238: one replica at many times its knee turned affinity off for all. Of eight one becomes 50 times as
// slow with all that it holds; the hits on the others, of the replicas' own counting, stay.
func TestOneHotReplicaLeavesTheOthersTheirHits(t *testing.T) {
	calm, _ := othersHits(t, "")
	hot, waiting := othersHits(t, "slow:0:0.02@20s")
	if waiting < 3 {
		t.Fatalf("%v wait at most: it is not hot", waiting)
	}
	if hot < 0.95*calm {
		t.Errorf("hits on the others %.1f %%, %.1f before one was hot", 100*hot, 100*calm)
	}
}
