package route

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/gate"
	"github.com/weirproxy/weir/pkg/pool"
)

// burst routes n requests at one instant, each from its own goroutine. All have been parsed and looked up
// before the first is decided: the worst case, as none sees what another charged or pinned.
func burst(r *Router, n int, request func(i int) *Request) []*Decision {
	all := make([]*Decision, n)
	var before, after sync.WaitGroup
	barrier := make(chan struct{})
	for i := range all {
		before.Add(1)
		after.Go(func() {
			q := request(i)
			d := &Decision{Pool: r.pool.Name, Arrived: at(0)}
			r.parse(d, q)
			d.classify(at(0), r, q)
			r.locate(at(0), d, q.Session)
			before.Done()
			<-barrier
			if r.offer(at(0), d) == gate.Admitted {
				d.pin(d.lease.Replica, d.lease.Load)
			}
			all[i] = d
		})
	}
	before.Wait()
	close(barrier)
	after.Wait()
	return all
}

func leases(r *Router) (n []int) {
	for _, s := range r.Stats(at(0)).Replicas {
		n = append(n, s.Leases)
	}
	return n
}

// vllm-project/aibrix#2422: 256 requests at once on 8 idle replicas.
func TestBurstSpreads(t *testing.T) {
	for name, request := range map[string]func(i int) *Request{
		"different prompts": func(i int) *Request { return ask(i, 100) },
		"one shared prompt": func(int) *Request { return ask(1, 100) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRouter(8, Default())
			all := burst(r, 256, request)
			if n := leases(r); slices.Max(n)-slices.Min(n) > 1 {
				t.Errorf("leases by replica: %v", n)
			}
			for _, d := range all {
				if d.State != Picked {
					t.Fatalf("state %v below every knee", d.State)
				}
				r.Done(at(1), d, Answered)
			}
			idle(t, r, at(1))
		})
	}
}

// The same with more work than all knees together: each replica goes over its knee by at most the last request,
// and the rest is held.
func TestBurstStopsAtTheKnee(t *testing.T) {
	for name, request := range map[string]func(i int) *Request{
		"different prompts": func(i int) *Request { return ask(i, 2000) },
		"one shared prompt": func(int) *Request { return ask(1, 2000) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRouter(8, Default())
			all := burst(r, 256, request)
			admitted := 0
			for i, s := range r.Stats(at(0)).Replicas {
				admitted += s.Leases
				own := 2010 * 30e-6 // the last request's own prefill, seconds
				if s.WaitSeconds < s.TauSeconds || s.WaitSeconds > s.TauSeconds+own {
					t.Errorf("replica %d: wait %v s, tau %v", i, s.WaitSeconds, s.TauSeconds)
				}
			}
			held := r.Stats(at(0)).Held["interactive"]
			if n := leases(r); admitted+held != 256 || held < 150 || slices.Max(n)-slices.Min(n) > 1 {
				t.Errorf("%d held, leases by replica: %v", held, n)
			}
			for i, d := range all { // ends, some of them of held requests, in any order
				if r.Done(at(1+float64(i)/256), d, Answered) {
					r.Release(at(1 + float64(i)/256))
				}
			}
			idle(t, r, at(2))
		})
	}
}

// In a router's first minute a prefix's home counts a fifth of the work, times m: it may lead by 0.8 * 21 requests
// of one size and no more, and its knee holds as well.
func TestBurstOfAYoungRouter(t *testing.T) {
	r := newRouter(8, Default())
	r.start.Store(0)
	burst(r, 256, func(int) *Request { return ask(1, 100) })
	if n := leases(r); slices.Max(n)-slices.Min(n) > 18 {
		t.Errorf("leases by replica: %v", n)
	}
}

// vllm-project/vllm#49538: the replicas' metrics stand at zero for 20 s while 200 requests come in one second. What weir sent
// itself decides, and the gauges add nothing twice when they wake.
func TestFrozenMetricsDoNotMislead(t *testing.T) {
	r := newRouter(4, Default())
	sample := func(now time.Time, s pool.Sample) {
		s.At, s.HasKV, s.HasTokens, s.HasRunning, s.HasWaiting = now, true, true, true, true
		for i := range 4 {
			r.Observe(now, endpoint(i), s)
		}
		r.Release(now)
	}
	sample(at(0), pool.Sample{})
	var all []*Decision
	for i := range 200 {
		now := at(float64(i) / 200)
		all = append(all, r.Route(now, ask(i, 300+i%7*200)))
		r.Release(now)
		for j, s := range r.Stats(now).Replicas {
			if s.WaitSeconds > s.TauSeconds+0.05 {
				t.Fatalf("replica %d is above its knee: %+v", j, s)
			}
		}
	}
	tokens := make([]float64, 4)
	for _, d := range all {
		if d.State == Picked {
			tokens[d.Choice.First.Slot] += d.Choice.Load.Prompt
		}
	}
	if mean := (tokens[0] + tokens[1] + tokens[2] + tokens[3]) / 4; slices.Max(tokens) > 1.3*mean {
		t.Errorf("tokens by replica: %v", tokens)
	}
	for s := range 20 {
		sample(at(float64(1+s)), pool.Sample{})
	}
	var before, after []pool.Stats
	before = r.Stats(at(20)).Replicas
	sample(at(20), pool.Sample{Running: 50, Waiting: 10, KV: 0.3, Tokens: 1000})
	after = r.Stats(at(20)).Replicas
	for i := range before {
		if before[i].BacklogTokens != after[i].BacklogTokens || after[i].KV != 0.3 {
			t.Errorf("replica %d: before %+v, after %+v", i, before[i], after[i])
		}
	}
	for _, d := range all {
		r.Done(at(21), d, Answered)
	}
	idle(t, r, at(21))
}
