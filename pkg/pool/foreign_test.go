package pool

import (
	"math"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/prefix"
)

// ran is a page that says so many run, and one more waits.
func ran(s, running float64) Sample {
	return Sample{At: at(s), Running: running - 1, HasRunning: true, Waiting: 1, HasWaiting: true}
}

// Nothing of weir's own is taken for others': what ended, left or moved since the replica counted, what it does not
// count yet, and pages that do not tell.
func TestNobodyElseIsSeen(t *testing.T) {
	for _, c := range []struct {
		name string
		page Sample
		live int // leases when the page was made, of which all but one are gone when it arrives
	}{
		{"ended since", ran(1, 20), 20},
		{"not yet counted", ran(1, 5), 20},
		{"no running", Sample{At: at(1), Waiting: 90, HasWaiting: true}, 20},
		{"no waiting", Sample{At: at(1), Running: 90, HasRunning: true}, 20},
		{"idle", Sample{At: at(1), HasRunning: true, HasWaiting: true}, 20},
	} {
		p := New("p", []string{"a"}, plain)
		r := p.Replicas[0]
		leases := make([]Lease, c.live)
		for i := range leases {
			r.charge(at(0), &leases[i], Load{Prompt: 100, Uncached: 100, Output: 10})
		}
		for i := range leases[1:] {
			leases[i].Release(at(0.5), i%2 == 0)
		}
		p.Observe(at(1), r, c.page)
		if p.Own() != 1 || r.foreign != 0 {
			t.Errorf("%s: %v of others, own share %v", c.name, r.foreign, p.Own())
		}
		p.Observe(at(2), r, ran(2, 3)) // the peak is of one scrape: two of three are others' by now
		if r.foreign != 2 {
			t.Errorf("%s: %v of others, want 2", c.name, r.foreign)
		}
	}
}

// The share follows the sums of all replicas: a replica that only others use counts as well as one that nobody else does.
func TestOwnShare(t *testing.T) {
	p := New("p", []string{"a", "b"}, plain)
	var l Lease
	p.Replicas[0].charge(at(0), &l, Load{Prompt: 100, Uncached: 100, Output: 10})
	page := func(s, a, b float64) {
		p.Observe(at(s), p.Replicas[0], ran(s, a))
		p.Observe(at(s), p.Replicas[1], ran(s, b))
	}
	page(1, 1, 1)
	if got := p.Own(); math.Abs(got-0.5) > 0.03 {
		t.Errorf("own share %v after a scrape of each, want near 0.5", got)
	}
	for s := 2.0; s < 200; s++ {
		page(s, 3, 1)
	}
	if got := p.Own(); math.Abs(got-0.25) > 0.03 {
		t.Errorf("own share %v, want 0.25", got)
	}
	for s := 200.0; s < 400; s++ {
		page(s, 1, 1000)
	}
	if got := p.Own(); got != minOwn {
		t.Errorf("own share %v, want the least, %v", got, minOwn)
	}
	for s := 400.0; s < 1000; s++ {
		p.Observe(at(s), p.Replicas[0], ran(s, 1))
	}
	if got := p.Own(); got < 0.99 {
		t.Errorf("own share %v long after the others left", got)
	}
	idle := Sample{HasRunning: true, HasWaiting: true}
	for s := 1000.0; s < 1e5; s++ { // nobody runs anything: what was known stays, and is a number
		idle.At = at(s)
		p.Observe(idle.At, p.Replicas[0], idle)
	}
	if got := p.Own(); !(got >= 0.99 && got <= 1) {
		t.Errorf("own share %v after a day of nothing", got)
	}
}

// Others' requests make steps longer, as weir's own do, for as long as the gauge is believed.
func TestForeignStretchesSteps(t *testing.T) {
	r := New("p", []string{"a"}, plain).Replicas[0]
	alone := New("p", []string{"a"}, plain).Replicas[0]
	load := Load{Prompt: 1000, Uncached: 10, Output: 200}
	leases := make([]Lease, 8)
	for i := range leases {
		if i < 2 {
			r.charge(at(0), &leases[i], load)
		} else {
			alone.charge(at(0), &leases[i], load)
		}
	}
	r.Observe(at(1), ran(1, 6))
	if got, want := r.View(at(1)).Step, alone.View(at(1)).Step; !near(got, want) {
		t.Errorf("a step beside four of others takes %v s, with six of one's own %v", got, want)
	}
	var late Lease
	r.charge(at(4.5), &late, load)
	if got, want := r.View(at(4.5)).Step, r.rates.Decode(3, 3*1100); !near(got, want) {
		t.Errorf("an old gauge: %v s, want %v without others", got, want)
	}
}

// What others send goes through the cache that weir models.
func TestForeignAgesTheIndex(t *testing.T) {
	cfg := plain
	cfg.KVTokens = 100 * chain.BlockTokens
	for others, want := range map[float64]int{0: 3, 1: 0} {
		p := New("p", []string{"a"}, cfg)
		r := p.Replicas[0]
		enter := func(from uint64, n int) {
			var c chain.Chain
			for i := range n {
				c = append(c, chain.Hash(from+uint64(i)))
			}
			r.Index.Unpin(c, r.Index.Pin(c, 0), prefix.All)
		}
		var l Lease
		r.charge(at(0), &l, Load{Prompt: 100, Uncached: 100, Output: 10})
		enter(1, 3)
		p.Observe(at(1), r, ran(1, 1+others))
		enter(1000, 60)
		if got := r.Index.Match(chain.Chain{1, 2, 3}); got != want {
			t.Errorf("%v of others: %d of the oldest blocks held behind 60 of 100, want %d", others, got, want)
		}
	}
}

// working is a page of a replica at work: with each second, 10 more first tokens, of prompts of 2,000 uncached tokens, and
// 200 gaps of 20 ms.
func working(s, running, waiting float64) Sample {
	return Sample{
		At: at(s), Running: running, HasRunning: true, Waiting: waiting, HasWaiting: true, Tokens: 1 + 1000*s, HasTokens: true,
		TTFT: Summary{Count: 10 * s, Sum: s, Has: true}, InterToken: Summary{Count: 200 * s, Sum: 4 * s, Has: true},
		Computed: 20_000 * s, HasComputed: true,
	}
}

// What others let wait is ahead of a new request while two samples in a row tell of it, drains as weir's own does, and before
// it. Own requests that wait are not others'.
func TestOthersWaitAhead(t *testing.T) {
	p := New("p", []string{"a"}, plain)
	r := p.Replicas[0]
	for s := 1.0; s <= 3; s++ {
		p.Observe(at(s), r, working(s, 5, 0))
	}
	backlog := func(s float64) float64 { return r.View(at(s)).Backlog }
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6*(1+want) {
			t.Errorf("%s: %v tokens ahead, want %v", what, got, want)
		}
	}
	p.Observe(at(4), r, working(4, 5, 3))
	near("one sample", backlog(4), 0)
	p.Observe(at(5), r, working(5, 5, 6))
	near("three at both", backlog(5), 3*2000)
	near("drained", backlog(5.01), 3*2000-0.01/r.prefill)

	var l Lease
	p.Charge(at(5), &l, r, Load{Prompt: 500, Uncached: 500, Output: 10})
	near("with weir's own", backlog(5), 3*2000+500)
	left := 5 + 3*2000*r.prefill
	if near("theirs before it", backlog(left), 500); l.left != 500 {
		t.Errorf("%v tokens left of weir's own, which is behind", l.left)
	}
	near("drained", backlog(left+500*r.prefill), 0)

	l.Release(at(5.9), true)
	r.charge(at(5.9), &l, Load{Prompt: 1e6, Uncached: 1e6, Output: 10})
	p.Observe(at(6), r, working(6, 5, 3)) // of three, one is weir's own
	if want := 2 * 2000.0; math.Abs(r.theirs-want) > 1e-6 {
		t.Errorf("%v tokens of others, want %v", r.theirs, want)
	}
	p.Observe(at(7), r, working(7, 5, 0))
	if r.theirs != 0 {
		t.Errorf("%v tokens of others when nobody waits", r.theirs)
	}
}
