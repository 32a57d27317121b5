package route

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// newSmall routes to n replicas whose knee is at 500 uncached tokens, 0.5 s, with eight seats and 200 blocks.
func newSmall(n, maxHeld int) *Router { return smallOf(n, holding(maxHeld)) }

func smallOf(n int, cfg Config) *Router {
	endpoints := make([]string, n)
	for i := range endpoints {
		endpoints[i] = endpoint(i)
	}
	cfg.Classes[0].Deadline, cfg.Classes[1].Deadline = 3*time.Second, 10*time.Second
	r := New(cfg, pool.New("llm", endpoints, pool.Config{
		Profile: "8B", Step: time.Millisecond, PerPromptToken: time.Millisecond, Chunk: 100,
		MaxKVPercent: 100, KVTokens: 64 * 200, Seats: 8, OutputTokens: 100,
	}))
	r.start.Store(epoch.Add(-time.Hour).UnixNano())
	return r
}

// randomRequest is of 20 to 320 tokens, of one of four prefixes, of either class, or unreadable.
func randomRequest(rng *rand.Rand) *Request {
	q := chat(words(rng.IntN(4), 64*rng.IntN(4)), words(100+rng.IntN(1000), 20+rng.IntN(100)))
	switch rng.IntN(10) {
	case 0:
		q.Body = q.Body[:len(q.Body)/2]
	case 1:
		q.Body = nil
	case 2, 3, 4:
		bulkly(q)
	}
	if rng.IntN(5) == 0 {
		q.Class.HeaderDeadline = "500ms"
	}
	return q
}

// randomScrape is a page of one replica: at times a restarted one's, or one without some gauge.
func randomScrape(rng *rand.Rand, now time.Time) pool.Sample {
	return pool.Sample{
		At: now, KV: rng.Float64(), HasKV: rng.IntN(3) == 0,
		Tokens: now.Sub(epoch).Seconds() * float64(rng.IntN(20)/19), HasTokens: rng.IntN(2) == 0,
	}
}

// vllm-project/production-stack PR#1072: however requests end, nothing of them stays. A thousand pools live through random events, in virtual
// time.
func TestNothingStaysAfterRandomHistories(t *testing.T) {
	var ends [outcomes]int
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 11))
		r := newSmall(1+rng.IntN(4), 1+rng.IntN(12))
		now := epoch
		var all, open []*Decision
		for range 40 {
			now = now.Add(time.Duration(rng.ExpFloat64() * 1.6e8))
			switch k := rng.IntN(10); {
			case k < 5:
				d := r.Route(now, randomRequest(rng))
				all, open = append(all, d), append(open, d)
			case k < 7 && len(open) > 0:
				i := rng.IntN(len(open))
				d := open[i]
				if rng.IntN(3) == 0 {
					r.Serve(now, d, endpoint(rng.IntN(5)))
				}
				d.Status = []int{0, 200, 400, 503}[rng.IntN(4)]
				if rng.IntN(4) > 0 {
					r.Done(now, d, []Outcome{Answered, Unanswered, Failed}[rng.IntN(3)])
					open = slices.Delete(open, i, i+1)
				}
			case k < 9:
				r.Observe(now, endpoint(rng.IntN(4)), randomScrape(rng, now))
			case len(all) > 0:
				r.Done(now, all[rng.IntN(len(all))], Answered) // a second end, perhaps
			}
			if rng.IntN(4) > 0 {
				r.Release(now)
			}
		}
		for _, d := range all {
			if d.Ready() != nil && rng.IntN(2) == 0 {
				now = now.Add(time.Duration(rng.IntN(1e9)))
				r.Release(now)
			}
			r.Done(now, d, Unanswered)
			if d.Outcome == None || d.State == Deciding || d.Ready() != nil && d.State != Held && !ready(d) {
				t.Fatalf("seed %d: a request ended in state %v with outcome %v", seed, d.State, d.Outcome)
			}
			ends[d.Outcome]++
		}
		if idle(t, r, now); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, o := range []Outcome{Answered, Unanswered, Failed, LeftHeld, Late, Full} {
		if ends[o] < 50 {
			t.Errorf("only %d requests ended %v: the histories are too tame (%v)", ends[o], o, ends)
		}
	}
}

// The same with goroutines that end requests while others are released: under the race detector, as fast as they
// can.
func TestDoneRacesRelease(t *testing.T) {
	for seed := range uint64(4) {
		r := newSmall(3, 40)
		var clock atomic.Int64 // nanoseconds since epoch
		now := func() time.Time { return epoch.Add(time.Duration(clock.Load())) }
		var requests, releaser sync.WaitGroup
		var over atomic.Bool
		var ends [outcomes]atomic.Int64
		const workers, each = 24, 60
		for w := range uint64(workers) {
			requests.Go(func() {
				rng := rand.New(rand.NewPCG(seed, w))
				for range each {
					clock.Add(int64(rng.IntN(2e7)))
					ends[live(rng, r, now)].Add(1)
				}
			})
		}
		releaser.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 99))
			for !over.Load() {
				clock.Add(1e6)
				r.Release(now())
				r.Observe(now(), endpoint(rng.IntN(3)), randomScrape(rng, now()))
				_, _ = r.Next(), r.Stats(now())
				runtime.Gosched()
			}
		})
		requests.Wait()
		over.Store(true)
		releaser.Wait()
		total := int64(0)
		for o := range ends {
			total += ends[o].Load()
		}
		if idle(t, r, now()); total != workers*each || ends[None].Load() != 0 {
			t.Errorf("seed %d: %d outcomes of %d requests, %d without one", seed, total, workers*each, ends[None].Load())
		}
		if ends[LeftHeld].Load() == 0 || ends[Answered].Load() == 0 {
			t.Errorf("seed %d: outcomes too tame", seed)
		}
	}
}

// A client may leave between the admission of its held request and the entry of its blocks.
func TestDoneBetweenReleaseAndPin(t *testing.T) {
	r := newSmall(1, 10)
	leases := fill(r, at(0))
	d := r.Route(at(0), ask(1, 200))
	leases[0].Release(at(1), true)
	released, replica, load := r.releaseOne(at(1))
	if released != d || replica == nil {
		t.Fatalf("released %v", released)
	}
	r.Done(at(1), d, Unanswered)
	d.pin(replica, load)
	if idle(t, r, at(1)); d.Outcome != Unanswered {
		t.Errorf("outcome %v", d.Outcome)
	}
}

// live is one request's life on its own goroutine, to its outcome.
func live(rng *rand.Rand, r *Router, now func() time.Time) Outcome {
	d := r.Route(now(), randomRequest(rng))
	if d.Ready() != nil {
		switch rng.IntN(3) {
		case 0: // leaves at once, perhaps as it is released
		case 1:
			r.Release(now())
		default:
			<-d.Ready()
		}
	}
	if rng.IntN(4) == 0 && (d.Ready() == nil || ready(d)) {
		r.Serve(now(), d, endpoint(rng.IntN(4)))
	}
	if rng.IntN(2) == 0 {
		runtime.Gosched()
	}
	if r.Done(now(), d, Answered) {
		r.Release(now())
	}
	r.Done(now(), d, Failed)
	return d.Outcome
}

// gateway-api-inference-extension PR#604: what weir refuses touches no replica.
func TestRefusedTouchesNoReplica(t *testing.T) {
	r := newSmall(4, 5)
	rng := rand.New(rand.NewPCG(6, 6))
	leases := fill(r, at(0))
	for range 5 {
		r.Route(at(0), ask(1, 100))
		r.Route(at(0), bulkly(ask(1, 100)))
	}
	before := r.Stats(at(0))
	var all []*Decision
	for range 500 {
		all = append(all, r.Route(at(0), randomRequest(rng)), Unrouted("llm", at(0), TooLarge))
	}
	for _, d := range all {
		r.Done(at(0), d, Answered)
		if d.Outcome != Full && d.Outcome != TooLarge {
			t.Fatalf("outcome %v", d.Outcome)
		}
	}
	if after := r.Stats(at(0)); !slices.Equal(before.Replicas, after.Replicas) {
		t.Errorf("before %+v\nafter  %+v", before.Replicas, after.Replicas)
	}
	if n := r.Release(at(20)); n != 10 { // late ones
		t.Errorf("%d released, want 10", n)
	}
	for _, l := range leases {
		l.Release(at(20), true)
	}
	idle(t, r, at(20))
	normal := 0
	for range 500 {
		d := r.Route(at(21), ask(normal, 50))
		if d.State == Picked {
			normal++
		}
		r.Done(at(21), d, Answered)
	}
	if idle(t, r, at(21)); normal != 500 {
		t.Errorf("%d of 500 picked afterwards", normal)
	}
}
