package route

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/prompt"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return epoch.Add(time.Duration(seconds * 1e9)) }

func endpoint(i int) string { return fmt.Sprintf("10.0.0.%d:8000", i+1) }

// newRouter routes to n replicas of the 8B profile, whose knee is near 18,000 uncached tokens. It started long
// ago: no home is preferred.
func newRouter(n int, cfg Config) *Router {
	endpoints := make([]string, n)
	for i := range endpoints {
		endpoints[i] = endpoint(i)
	}
	replica, _ := pool.Default("8B")
	r := New(cfg, pool.New("llm", endpoints, replica))
	r.start.Store(epoch.Add(-time.Hour).UnixNano())
	return r
}

// holding is the default with so many held requests of each class at most.
func holding(most int) Config {
	cfg := Default()
	for i := range cfg.Classes {
		cfg.Classes[i].MaxHeld = most
	}
	return cfg
}

// words is text of about n tokens, different for each seed from its first block on.
func words(seed, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < 4*n; i++ {
		fmt.Fprintf(&b, "%x ", uint64(seed*1_000_003+i+1)*0x9e3779b97f4a7c15)
	}
	return b.String()[:4*n]
}

// chat is a request of a system prompt and a question.
func chat(system, question string) *Request {
	body := fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":%q},{"role":"user","content":%q}]}`, system, question)
	return &Request{Path: "/v1/chat/completions", Body: []byte(body)}
}

func ask(seed, tokens int) *Request { return chat(words(seed, tokens), "?") }

func bulkly(q *Request) *Request {
	q.Class.HeaderClass = "bulk"
	return q
}

// idle fails unless nothing is held, charged or pinned, to the last bit.
func idle(t *testing.T, r *Router, now time.Time) {
	t.Helper()
	s := r.Stats(now)
	for class, n := range s.Held {
		if n != 0 {
			t.Errorf("%d held of class %s", n, class)
		}
	}
	for i, rep := range s.Replicas {
		if rep.Leases != 0 || rep.PendingTokens != 0 || rep.BacklogTokens != 0 || rep.WaitSeconds != 0 || rep.IndexPinned != 0 {
			t.Errorf("replica %d is not idle: %+v", i, rep)
		}
	}
}

func ready(d *Decision) bool {
	select {
	case <-d.Ready():
		return true
	default:
		return false
	}
}

func TestRouteChargesAndDoneGivesBack(t *testing.T) {
	r := newRouter(4, Default())
	q := ask(1, 2000)
	d := r.Route(at(0), q)
	if d.State != Picked || d.Outcome != None || d.Ready() != nil || d.Class != "interactive" || d.Pool != "llm" {
		t.Fatalf("Decision = %+v", d)
	}
	first := d.Choice.First
	s := first.Stats(at(0))
	if s.Leases != 1 || math.Abs(s.BacklogTokens-float64(d.Prompt.Tokens)) > 1 || s.IndexPinned < 2000/64 {
		t.Errorf("after the pick: %+v", s)
	}
	if want := first.Endpoint + "," + d.Choice.Second.Endpoint; d.Endpoints() != want || first == d.Choice.Second {
		t.Errorf("endpoints %q, want %q", d.Endpoints(), want)
	}
	if held := r.Done(at(1), d, Answered); held || d.Outcome != Answered {
		t.Errorf("held %v, outcome %v", held, d.Outcome)
	}
	idle(t, r, at(1))
	// What it left in the cache draws the next one of the same prefix, whatever its question.
	e := r.Route(at(2), chat(words(1, 2000), "something else"))
	if e.Choice.First != first || e.Choice.Matched < 2000/64-1 || e.Choice.Load.Uncached > 200 {
		t.Errorf("the second went to %s with %d blocks matched", e.Choice.First.Endpoint, e.Choice.Matched)
	}
	r.Done(at(3), e, Answered)
	idle(t, r, at(3))
}

func TestSharedPrefixAndLoadTogether(t *testing.T) {
	r := newRouter(4, Default())
	warm := r.Route(at(0), ask(1, 3000))
	r.Done(at(1), warm, Answered)
	// Much pending work on the holder: the prompt is cheaper to compute elsewhere.
	r.mu.Lock()
	var l pool.Lease
	r.pool.Charge(at(1), &l, warm.Choice.First, pool.Load{Prompt: 60_000, Uncached: 60_000})
	r.mu.Unlock()
	if d := r.Route(at(1), ask(1, 3000)); d.State != Picked || d.Choice.First == warm.Choice.First {
		t.Errorf("a replica with 60,000 tokens ahead was chosen: state %v", d.State)
	}
}

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name  string
		end   Outcome
		bring func(r *Router) *Decision
		want  Outcome
	}{
		{"picked and answered", Answered, func(r *Router) *Decision { return r.Route(at(0), ask(9, 10)) }, Answered},
		{"picked and cut", Unanswered, func(r *Router) *Decision { return r.Route(at(0), ask(9, 10)) }, Unanswered},
		{"a fault after the pick", Failed, func(r *Router) *Decision { return r.Route(at(0), ask(9, 10)) }, Failed},
		{"left while held", Unanswered, func(r *Router) *Decision {
			fill(r, at(0))
			return r.Route(at(0), ask(9, 10))
		}, LeftHeld},
		{"late", Answered, func(r *Router) *Decision {
			fill(r, at(0))
			d := r.Route(at(0), ask(9, 10))
			r.Release(at(3600))
			return d
		}, Late},
		{"full", Answered, func(r *Router) *Decision {
			fill(r, at(0))
			for range 3 {
				r.Route(at(0), ask(8, 10))
			}
			return r.Route(at(0), ask(9, 10))
		}, Full},
		{"unrouted", Answered, func(*Router) *Decision { return Unrouted("llm", at(0), TooLarge) }, TooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRouter(1, holding(3))
			d := c.bring(r)
			r.Done(at(0), d, c.end)
			if d.Outcome != c.want {
				t.Errorf("outcome %v, want %v", d.Outcome, c.want)
			}
			before := r.Stats(at(0))
			r.Done(at(0), d, Failed)
			if after := r.Stats(at(0)); d.Outcome != c.want || !slices.Equal(before.Replicas, after.Replicas) {
				t.Errorf("a second Done changed outcome %v or load", d.Outcome)
			}
		})
	}
}

// fill brings every replica above its knee by one long request each, for many seconds.
func fill(r *Router, now time.Time) (leases []*pool.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rep := range r.pool.Replicas {
		l := &pool.Lease{}
		r.pool.Charge(now, l, rep, pool.Load{Prompt: 300_000, Uncached: 300_000})
		leases = append(leases, l)
	}
	return leases
}

func TestNoReplica(t *testing.T) {
	r := newRouter(0, Default())
	d := r.Route(at(0), ask(1, 100))
	if d.State != Refused || d.Outcome != NoReplica || d.Ready() != nil {
		t.Errorf("Decision = %+v", d)
	}
	if r.Done(at(0), d, Answered); d.Outcome != NoReplica {
		t.Errorf("outcome %v", d.Outcome)
	}
	if r.Release(at(1)) != 0 || !r.Next().IsZero() {
		t.Error("an empty pool has something to release")
	}
}

func TestPoolOfOneHasNoSecond(t *testing.T) {
	d := newRouter(1, Default()).Route(at(0), ask(1, 100))
	if d.Choice.Second != nil || d.Endpoints() != endpoint(0) {
		t.Errorf("endpoints %q", d.Endpoints())
	}
}

// Nothing that cannot be read is refused: it is routed by load, with an estimate from its size.
func TestUnreadableIsRoutedByLoad(t *testing.T) {
	r := newRouter(2, Default())
	for _, q := range []*Request{
		{Path: "/v1/embeddings", Body: []byte(words(1, 500))},
		{Path: "/v1/chat/completions", Body: []byte(`{"messages":[{"role":"user","content":"` + words(1, 500))},
		{Path: "", Body: nil},
		{Path: "/v1/chat/completions", Unread: prompt.ReasonEncoding, Body: []byte(words(1, 500))},
	} {
		d := r.Route(at(0), q)
		if d.State != Picked || len(d.Prompt.Chain) != 0 || d.Prompt.Reason == prompt.ReasonNone {
			t.Errorf("%q: state %v, %d blocks, reason %v", q.Path, d.State, len(d.Prompt.Chain), d.Prompt.Reason)
		}
		if got := d.Choice.Load.Uncached; got != max(float64(d.Prompt.Tokens), 1) {
			t.Errorf("%q: charged %v of %d tokens", q.Path, got, d.Prompt.Tokens)
		}
		twin := r.Route(at(0), q)
		if twin.Choice.First == d.Choice.First {
			t.Errorf("%q: its twin went to the busier of two replicas", q.Path)
		}
		r.Done(at(0), twin, Answered)
		r.Done(at(0), d, Answered)
		idle(t, r, at(0))
	}
}

func TestQueuedAndWait(t *testing.T) {
	r := newRouter(1, Default())
	leases := fill(r, at(0))
	var held []*Decision
	for i := range 3 {
		d := r.Route(at(0), ask(i, 100))
		if d.State != Held || d.Queued != i+1 || ready(d) {
			t.Fatalf("request %d: state %v, %d queued", i, d.State, d.Queued)
		}
		held = append(held, d)
	}
	if s := r.Stats(at(0)); s.Held["interactive"] != 3 || s.Held["bulk"] != 0 {
		t.Errorf("held: %v", s.Held)
	}
	leases[0].Release(at(2), true)
	if n := r.Release(at(2)); n != 3 {
		t.Errorf("%d released, want 3", n)
	}
	for i, d := range held {
		if !ready(d) || d.State != Picked || d.Wait != 2*time.Second {
			t.Errorf("request %d: state %v after %v", i, d.State, d.Wait)
		}
		r.Done(at(3), d, Answered)
	}
	idle(t, r, at(3))
}

// Held requests of one prefix see each other: the blocks of the first are there when the second is looked at.
func TestHeldRequestsOfOnePrefixSeeEachOther(t *testing.T) {
	r := newRouter(4, Default())
	leases := fill(r, at(0))
	var held []*Decision
	for range 5 {
		held = append(held, r.Route(at(0), ask(1, 3000)))
	}
	for _, l := range leases {
		l.Release(at(1), true)
	}
	if n := r.Release(at(1)); n != 5 {
		t.Fatalf("%d released, want 5", n)
	}
	first := held[0].Choice.First
	for i, d := range held[1:] {
		if u := d.query.LoadOn(first.Slot).Uncached; u > 100 || d.Choice.First == first && d.Choice.Load.Uncached != u {
			t.Errorf("request %d counts %v uncached tokens where the first went", i+1, u)
		}
	}
	if r.Stats(at(1)).Replicas[first.Slot].IndexPinned < 3000/64 {
		t.Error("the first pinned nothing")
	}
}

func TestObserveReachesTheReplica(t *testing.T) {
	r := newRouter(2, Default())
	r.Observe(at(1), endpoint(1), pool.Sample{At: at(1), KV: 0.25, HasKV: true})
	r.Observe(at(1), "192.0.2.1:80", pool.Sample{At: at(1), KV: 0.5, HasKV: true})
	if s := r.Stats(at(1)).Replicas; s[0].Scrape != nil || s[1].KV != 0.25 {
		t.Errorf("replicas: %+v", s)
	}
}
