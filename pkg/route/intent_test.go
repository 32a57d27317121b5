package route

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pick"
	"github.com/weirproxy/weir/pkg/pool"
)

// intent is the default with a change.
func intent(change func(c *Config)) Config {
	cfg := Default()
	change(&cfg)
	return cfg
}

// A value that none of a line's is refused with the list of those that are, under the line's name.
func TestIntentIsAClosedGrammar(t *testing.T) {
	for _, c := range []struct {
		change func(c *Config)
		want   string // empty: valid
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.Queue = Classes }, ""},
		{func(c *Config) { c.Queue = FIFO }, ""},
		{func(c *Config) { c.Queue = NoQueue }, ""},
		{func(c *Config) { c.Rule = NoRule }, ""},
		{func(c *Config) {
			c.Pick = pick.Config{BalanceOn: pick.Requests, Affinity: "consistent_hash(header:x-user)"}
		}, ""},
		{func(c *Config) { c.Queue = "lifo" }, `queue: "lifo" is none of priority_classes + deadlines, priority_classes, fifo, none`},
		{func(c *Config) { c.Queue = "priority_classes+deadlines" }, `queue: "priority_classes+deadlines" is none of priority_classes + deadlines, priority_classes, fifo, none`},
		{func(c *Config) { c.Rule = "" }, `rule: "" is none of keep each replica just below its knee, none`},
		{func(c *Config) { c.Pick.BalanceOn = "tokens" }, `balance_on: "tokens" is none of pending_tokens, requests, none`},
		{func(c *Config) { c.Pick.Affinity = "prefix" }, `affinity: "prefix" is none of consistent_hash(prompt_prefix), consistent_hash(header:NAME), consistent_hash(prompt_cache_key), none`},
	} {
		got := ""
		if err := intent(c.change).Validate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// affinity: what a replica holds draws the next request of its prefix, or does not; what the request is charged there is
// what must be computed there either way.
func TestAffinityOfPrefixAndNone(t *testing.T) {
	for affinity, drawn := range map[string]bool{pick.PromptPrefix: true, pick.None: false} {
		r := newRouter(4, intent(func(c *Config) { c.Pick.Affinity = affinity }))
		warm := r.Route(at(0), ask(1, 4000))
		r.Done(at(1), warm, Answered)
		at4 := warm.Choice.First
		hits := 0
		for i := range 40 {
			d := r.Route(at(float64(2+i)), chat(words(1, 4000), fmt.Sprint("question ", i)))
			if d.Choice.First == at4 {
				hits++
			}
			held := float64(d.Choice.First.Index.Match(warm.Prompt.Chain) * 64)
			if u := d.Choice.Load.Uncached; d.Choice.First == at4 && u > 300 || held == 0 && u < 4000 {
				t.Errorf("%s: charged %v uncached tokens on %s", affinity, u, d.Choice.First.Endpoint)
			}
			if d.Choice.First != at4 {
				d.Status = 400 // so that nobody else becomes warm
			}
			r.Done(at(float64(2+i)+0.5), d, Answered)
		}
		if drawn && hits != 40 || !drawn && (hits < 3 || hits > 20) {
			t.Errorf("%s: %d of 40 went where the prefix is held", affinity, hits)
		}
	}
}

// affinity to a header: a session keeps its home, however old its router, whatever it asks and whatever else there is
// to do, and a router that starts anew, with its replicas in another order, agrees.
func TestAffinityOfAHeader(t *testing.T) {
	cfg := intent(func(c *Config) { c.Pick.Affinity = "consistent_hash(header:x-session)" })
	if h := newRouter(1, cfg).AffinityHeader(); h != "x-session" {
		t.Errorf("affinity header %q", h)
	}
	home := map[string]string{}
	for restart := range 3 {
		r := newRouter(6, cfg)
		if restart == 2 {
			p, _ := pool.Default("8B")
			var reversed []string
			for i := range 6 {
				reversed = append(reversed, endpoint(5-i))
			}
			r = New(cfg, pool.New("llm", reversed, p))
		}
		var open []*Decision
		for i := range 300 {
			now := at(float64(i) / 20)
			if len(open) > 10 { // half a second each
				r.Done(now, open[0], Answered)
				open = open[1:]
			}
			q := ask(1000*restart+i, 200+i%7*100)
			if i%3 > 0 {
				q.Session = fmt.Sprint("user ", i%20)
			}
			d := r.Route(now, q)
			open = append(open, d)
			if d.State != Picked {
				t.Fatalf("state %v", d.State)
			}
			if q.Session == "" {
				continue
			}
			first := d.Choice.First.Endpoint
			if was, ok := home[q.Session]; ok && was != first {
				t.Errorf("start %d, request %d: %s was at %s and goes to %s", restart, i, q.Session, was, first)
			}
			home[q.Session] = first
		}
	}
	if homes := slices.Compact(slices.Sorted(maps.Values(home))); len(homes) < 4 {
		t.Errorf("20 sessions have the homes %v", homes)
	}
}

// balance_on: of requests of very different length, tokens come out even, or counts, or neither.
func TestBalanceOn(t *testing.T) {
	for _, c := range []struct {
		balance        string
		tokens, counts float64 // most over mean, at most
	}{
		{pick.PendingTokens, 1.15, 3},
		{pick.Requests, 3, 1.02},
		{pick.None, 3, 3},
	} {
		r := newRouter(4, intent(func(cfg *Config) { cfg.Pick.BalanceOn, cfg.Rule = c.balance, NoRule }))
		var tokens, counts [4]float64
		for i := range 400 {
			n := 100
			if i%8 == 0 {
				n = 3000
			}
			d := r.Route(at(0), ask(i, n))
			if d.State != Picked {
				t.Fatalf("%s: state %v", c.balance, d.State)
			}
			tokens[d.Choice.First.Slot] += d.Choice.Load.Prompt
			counts[d.Choice.First.Slot]++
		}
		spread := func(n [4]float64) float64 { return slices.Max(n[:]) * 4 / (n[0] + n[1] + n[2] + n[3]) }
		if s := spread(tokens); s > c.tokens || c.tokens > 2 && s < 1.15 && c.counts < 2 {
			t.Errorf("%s: tokens by replica %v, most over mean %.2f, want %v", c.balance, tokens, s, c.tokens)
		}
		if s := spread(counts); s > c.counts || c.balance == pick.None && s < 1.02 {
			t.Errorf("%s: requests by replica %v, most over mean %.3f, want %v", c.balance, counts, s, c.counts)
		}
	}
}

// queue: the order in which held requests go, one at a time, and which of them are refused at their deadlines.
func TestQueue(t *testing.T) {
	const order = "a, then bulk b, then c with a short deadline, then bulk d, then e"
	for _, c := range []struct {
		queue string
		want  string // names in the order of going; those in brackets are refused
		wait  time.Duration
	}{
		{ClassesDeadlines, "c a e b d", 0},
		{Classes, "a c e b d", 0},
		{FIFO, "a b c d e", 0},
		{NoQueue, "a b c d e", 0},
		{ClassesDeadlines, "(c) a e b d", 20 * time.Second},
		{Classes, "a c e b d", 20 * time.Second},
		{FIFO, "a b c d e", 20 * time.Second},
	} {
		cfg := intent(func(cfg *Config) { cfg.Queue, cfg.Classes[1].SharePercent = c.queue, 0 })
		replica, _ := pool.Default("8B")
		replica.Seats = 1
		r := New(cfg, pool.New("llm", []string{endpoint(0)}, replica))
		r.start.Store(epoch.Add(-time.Hour).UnixNano())
		busy := r.Route(at(0), ask(0, 10))
		names := map[*Decision]string{}
		for i, name := range strings.Split("a b c d e", " ") {
			q := ask(i+1, 50)
			switch name {
			case "b", "d":
				bulkly(q)
			case "c":
				q.Class.HeaderDeadline = "5s"
			}
			d := r.Route(at(0.01*float64(i+1)), q)
			names[d] = name
			if held := d.Ready() != nil; held != (c.queue != NoQueue) {
				t.Errorf("%s: %s is held: %v", c.queue, name, held)
			}
		}
		if got := strings.Join(leave(r, at(1).Add(c.wait), busy, names), " "); got != c.want {
			t.Errorf("%s: %s go as %s after %v, want %s", c.queue, order, got, c.wait, c.want)
		}
	}
}

// leave ends the busy request and each that goes after it, and returns the names in that order.
func leave(r *Router, now time.Time, busy *Decision, names map[*Decision]string) (order []string) {
	if r.Stats(now).Replicas[0].Leases == len(names)+1 { // nobody waits: as they came
		for _, d := range slices.SortedFunc(maps.Keys(names), func(a, b *Decision) int { return a.Arrived.Compare(b.Arrived) }) {
			order = append(order, names[d])
		}
		return order
	}
	gone := map[*Decision]bool{}
	for round := 0; round < 20 && len(gone) < len(names); round++ {
		if round%2 == 1 {
			r.Done(now, busy, Answered)
		}
		r.Release(now) // one at most: the others are not late, and there is one seat
		for d, name := range names {
			if gone[d] || !ready(d) {
				continue
			}
			gone[d] = true
			if d.State == Refused {
				name = "(" + name + ")"
			} else {
				busy = d
			}
			order = append(order, name)
		}
		now = now.Add(10 * time.Millisecond)
	}
	return order
}

// queue fifo: nobody is bulk, and so nobody waits where a replica is free; the class stays the request's name.
func TestFIFOKnowsNoBulk(t *testing.T) {
	for queue, held := range map[string]bool{ClassesDeadlines: true, Classes: true, FIFO: false, NoQueue: false} {
		r := newRouter(1, intent(func(c *Config) { c.Queue = queue }))
		r.Route(at(0), ask(1, 9000)) // 250 ms: below the knee of 500, above the quarter that bulk may add to
		d := r.Route(at(0), bulkly(ask(2, 100)))
		if (d.State == Held) != held || d.Class != "bulk" {
			t.Errorf("%s: bulk behind 250 ms of work is %v, class %s", queue, d.State, d.Class)
		}
	}
}

// queue none: nobody waits and nobody is refused, however much there is.
func TestNoQueueHoldsNobody(t *testing.T) {
	r := newRouter(2, intent(func(c *Config) { c.Queue = NoQueue }))
	fill(r, at(0))
	var all []*Decision
	for i := range 600 {
		d := r.Route(at(0), ask(i, 1000))
		if d.State != Picked || d.Ready() != nil || d.Wait != 0 || d.Queued != 0 {
			t.Fatalf("request %d: %+v", i, d)
		}
		all = append(all, d)
	}
	if n := leases(r); n[0] < 250 || n[1] < 250 {
		t.Errorf("leases %v", n)
	}
	for _, d := range all {
		r.Done(at(1), d, Answered)
	}
	if s := r.Stats(at(1)); s.Replicas[0].Leases != 1 || s.Replicas[1].Leases != 1 {
		t.Errorf("leases %+v after all, want those of the filling", s.Replicas)
	}
}

// rule none: a full replica takes what comes; only bulk waits for the others.
func TestNoRuleKeepsNoKnee(t *testing.T) {
	for rule, held := range map[string][2]bool{BelowKnee: {true, true}, NoRule: {false, true}} {
		r := newRouter(1, intent(func(c *Config) { c.Rule = rule }))
		fill(r, at(0))
		for i, q := range []*Request{ask(1, 100), bulkly(ask(2, 100))} {
			d := r.Route(at(0), q)
			if (d.State == Held) != held[i] {
				t.Errorf("%s: %s behind a full replica is %v", rule, d.Class, d.State)
			}
		}
		if v := r.pool.Replicas[0].View(at(0)); v.Below() {
			t.Errorf("the replica is not full: %+v", v)
		}
	}
}
