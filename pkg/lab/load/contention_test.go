package load

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
)

// TestContentionIsAsDescribed holds the sizes of the Contention's comment, and that no prompt shares a block with another.
func TestContentionIsAsDescribed(t *testing.T) {
	c := Contention{Seed: 3, Model: "m"}
	all := c.Steady(20, 10*time.Second)
	all = append(all, c.Bursts(3, 50, time.Second, 5*time.Second, true)...)
	for i := range 20 {
		all = append(all, c.Job(i))
	}
	seen := map[chain.Hash]bool{}
	for i := range all {
		a := &all[i]
		p := parsed(t, a)
		switch a.Kind {
		case Interactive, Ahead, Behind:
			check(t, a.Kind, p.Tokens, 500, 3550)
			check(t, a.Kind, p.Tokens/p.MaxTokens, 19, 52)
		case Bulk:
			check(t, a.Kind, p.Tokens, 8000, 16000)
			check(t, a.Kind, p.MaxTokens, 10, 30)
		case Giant:
			check(t, a.Kind, p.Tokens, GiantTokens, GiantTokens+50)
		}
		if asked := a.Header.Get("x-weir-class"); (asked == "bulk") != (a.Kind == Bulk) {
			t.Errorf("%s: class %q", a.Kind, asked)
		}
		if seen[p.Chain[0]] {
			t.Errorf("request %d, %s: begins like another", i, a.Kind)
		}
		seen[p.Chain[0]] = true
	}
	if !reflect.DeepEqual(c.Job(4), c.Job(4)) || !reflect.DeepEqual(c.Steady(20, time.Second), c.Steady(20, time.Second)) {
		t.Error("the same contention gives other requests")
	}
}

// TestBursts holds when the requests of a burst come, and that the small ones are the same without giants.
func TestBursts(t *testing.T) {
	const n, rate, on, period = 4, 100, time.Second, 5 * time.Second
	c := Contention{Seed: 3, Model: "m"}
	with := c.Bursts(n, rate, on, period, true)
	counts := map[string]int{}
	last := time.Duration(0)
	for _, a := range with {
		counts[a.Kind]++
		into := a.At % period
		if a.At < last || (a.Kind == Ahead && into >= on/2) || (a.Kind == Behind && (into < on/2 || into >= on)) || (a.Kind == Giant && into != on/2) {
			t.Errorf("%s at %v, after one at %v", a.Kind, a.At, last)
		}
		last = a.At
	}
	check(t, Giant, counts[Giant], n, n)
	check(t, Ahead, counts[Ahead], 130, 270) // 200, five standard deviations
	check(t, Behind, counts[Behind], 130, 270)
	without := slices.DeleteFunc(with, func(a Arrival) bool { return a.Kind == Giant })
	if !reflect.DeepEqual(without, c.Bursts(n, rate, on, period, false)) {
		t.Error("the small ones differ without giants")
	}
}

// TestLoopIsClosed holds that each client has one request under way at any time until the end of ctx, and goes on after
// one that fails.
func TestLoopIsClosed(t *testing.T) {
	const clients, jobs = 5, 60
	var busy, most, served atomic.Int64
	all := make(chan struct{})
	ctx, cancel := context.WithCancel(limited(t))
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		defer busy.Add(-1)
		n := busy.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		number := served.Add(1)
		if number == clients {
			close(all)
		}
		select {
		case <-all: // the first answer is for when all clients are there
		case <-ctx.Done():
		}
		switch {
		case number == 10:
			w.WriteHeader(http.StatusTooManyRequests)
		case number >= jobs:
			cancel()
			<-r.Context().Done()
		default:
			fmt.Fprint(w, answerText)
		}
	})
	g := New(url, 100)
	results := g.Loop(ctx, clients, func(i int) Arrival { return Arrival{Kind: fmt.Sprint(i), Path: "/"} })
	failed, kinds := 0, map[string]bool{}
	for i, r := range results {
		kinds[r.Kind] = true
		if r.Err != nil {
			failed++
		}
		if r.At < 0 || i > 0 && r.At < results[i-1].At {
			t.Errorf("result %d started at %v", i, r.At)
		}
	}
	// One was refused, and the end of ctx cut at least one and at most one of each client.
	if failed < 2 || failed > 1+clients || len(results) < jobs || len(kinds) != len(results) || most.Load() != clients {
		t.Errorf("%d results of %d jobs, %d failed, %d at once", len(results), len(kinds), failed, most.Load())
	}
	if sent, done, bad := g.Progress(); sent != len(results) || done != sent || bad != failed {
		t.Errorf("progress %d, %d, %d", sent, done, bad)
	}
	if none := New(url, 1).Loop(t.Context(), 0, nil); none != nil {
		t.Errorf("no clients: %v", none)
	}
}
