package pick

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/prefix"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return epoch.Add(time.Duration(seconds * 1e9)) }

// newPool returns n idle replicas. Their prefill is 28 us a token, so 18,000 tokens reach tau.
func newPool(n int) *pool.Pool {
	cfg, _ := pool.Default("8B")
	endpoints := make([]string, n)
	for i := range endpoints {
		endpoints[i] = fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250+1)
	}
	return pool.New("llm", endpoints, cfg)
}

func promptChain(seed uint64, n int) chain.Chain {
	rng := rand.New(rand.NewPCG(seed, 9))
	c := make(chain.Chain, n)
	for i := range c {
		c[i] = chain.Hash(rng.Uint64())
	}
	return c
}

// query is a request of a prompt of these blocks, and its home.
func query(p *pool.Pool, c chain.Chain) *Query {
	q := &Query{Chain: c, Prompt: float64(len(c) * chain.BlockTokens), Output: 256, Key: 7, Home: -1}
	if len(c) > 0 {
		q.Key = uint64(c[0])
		q.Home = p.Home(q.Key)
	}
	q.Lookup(p)
	return q
}

func charge(p *pool.Pool, now time.Time, slot int, uncached float64) *pool.Lease {
	l := &pool.Lease{}
	p.Charge(now, l, p.Replicas[slot], pool.Load{Prompt: uncached, Uncached: uncached, Output: 100})
	return l
}

// warm has the replica hold the chain.
func warm(p *pool.Pool, slot int, c chain.Chain) {
	x := p.Replicas[slot].Index
	x.Unpin(c, x.Pin(c, 0), prefix.All)
}

func TestTiesGoToTheHome(t *testing.T) {
	p := newPool(16)
	first, second := map[int]int{}, map[int]bool{}
	for i := range uint64(2000) {
		q := query(p, promptChain(i, 3))
		got := Best(epoch, p, q)
		if got.First.Slot != q.Home {
			t.Fatalf("an idle pool: picked %d, home is %d", got.First.Slot, q.Home)
		}
		for _, r := range p.Replicas {
			if r != got.First && p.Score(q.Key, r.Slot) > p.Score(q.Key, got.Second.Slot) {
				t.Fatalf("second is %d and %d scores higher", got.Second.Slot, r.Slot)
			}
		}
		first[got.First.Slot]++
		second[got.Second.Slot] = true
	}
	for slot := range p.Replicas {
		if first[slot] < 60 || !second[slot] {
			t.Errorf("replica %d is first for %d of 2000 and second for some: %v", slot, first[slot], second[slot])
		}
	}
}

// A prompt without blocks has a key of its own each time: ties go round.
func TestTiesWithoutAPrefixGoRound(t *testing.T) {
	p := newPool(8)
	count := make([]int, 8)
	for i := range uint64(4000) {
		q := &Query{Prompt: 10, Output: 10, Key: i, Home: -1}
		q.Lookup(p)
		count[Best(epoch, p, q).First.Slot]++
	}
	if slices.Min(count) < 400 || slices.Max(count) > 600 {
		t.Errorf("picks by replica: %v of 4000", count)
	}
}

func TestHomeDiscount(t *testing.T) {
	c := promptChain(1, 100) // 6,400 tokens
	p := newPool(4)
	q := query(p, c)
	away := (q.Home + 1) % 4
	charge(p, epoch, q.Home, 3000) // less than the 5,120 tokens that the discount is worth
	if got := Best(epoch, p, q); got.First.Slot == q.Home {
		t.Error("without the discount the busy home is picked")
	}
	q.Discount = HomeDiscount
	if got := Best(epoch, p, q); got.First.Slot != q.Home {
		t.Error("with the discount the home is not picked")
	}
	warm(p, away, c)
	q.Lookup(p)
	if got := Best(epoch, p, q); got.First.Slot != away {
		t.Error("a home is preferred to a replica that holds the prompt")
	}
	charge(p, epoch, away, 20_000)
	if got := Best(epoch, p, q); got.First.Slot == q.Home {
		t.Error("a busy home is preferred though all is known to be elsewhere")
	}
	p.Replicas[away].Index.Reset()
	q.Lookup(p)
	if got := Best(epoch, p, q); got.First.Slot != q.Home {
		t.Error("what the holder lost still counts as known")
	}
}

// Idle, a miss costs its own time; behind a backlog it costs a multiple, and affinity hardens.
func TestAffinityHardensWithBacklog(t *testing.T) {
	c := promptChain(1, 50) // 3,200 tokens
	p := newPool(2)
	warm(p, 0, c)
	q := query(p, c)
	want := func(slot int, why string) {
		t.Helper()
		if got := Best(epoch, p, q); got.First.Slot != slot {
			t.Errorf("picked %d, want %d: %s", got.First.Slot, slot, why)
		}
	}
	l := charge(p, epoch, 0, 4000)
	want(0, "m = 1 + 2000/4000 prices the miss at 4,800 tokens, and 4,000 are ahead")
	l.Release(epoch, true)
	charge(p, epoch, 0, 6000)
	want(1, "m = 1 + 3000/4020 prices the miss at 5,600 tokens, and 6,000 are ahead")
	charge(p, epoch, 0, 10_000)
	charge(p, epoch, 1, 10_000)
	want(0, "m = 1 + 13000/4140 prices the miss at 13,200 tokens, and 6,000 more are ahead")
}

// Beside other routers bulk stays where all of them send it, however idle the rest, unless all of that fails; whoever waits
// for an answer goes anywhere.
func TestBulkKeepsToItsReplicas(t *testing.T) {
	p := newPool(6)
	for _, r := range p.Replicas {
		charge(p, epoch, r.Slot, 9000)
		page := pool.Sample{At: epoch, Running: 2, HasRunning: true, HasWaiting: true}
		p.Observe(epoch, r, page)
	}
	views, _ := p.Views(epoch)
	var takes, free []int
	for slot, v := range views {
		if v.NoBulk {
			free = append(free, slot)
		} else {
			takes = append(takes, slot)
		}
	}
	if len(takes) == 0 || len(free) == 0 {
		t.Fatalf("replicas %v take bulk, %v do not", takes, free)
	}
	for _, slot := range takes {
		charge(p, epoch, slot, 50_000)
	}
	q := query(p, promptChain(1, 20))
	if got := Best(epoch, p, q); !slices.Contains(free, got.First.Slot) {
		t.Errorf("an interactive request waits behind 50,000 tokens on replica %d", got.First.Slot)
	}
	q.Bulk = true
	if got := Best(epoch, p, q); !slices.Contains(takes, got.First.Slot) {
		t.Errorf("bulk goes to replica %d, one of %v that are kept free of it", got.First.Slot, free)
	}
	if q.Owed = true; !slices.Contains(free, Best(epoch, p, q).First.Slot) {
		t.Error("bulk that is owed its share waits behind 50,000 tokens")
	}
	q.Owed = false
	for _, slot := range takes {
		p.Replicas[slot].Refuse(epoch)
	}
	if got := Best(epoch, p, q); !slices.Contains(free, got.First.Slot) {
		t.Errorf("bulk goes to replica %d, which is down", got.First.Slot)
	}
}

func TestNaNNeverWins(t *testing.T) {
	for slot := range 3 {
		p := newPool(3)
		p.Replicas[slot].Observe(epoch, pool.Sample{At: epoch, KV: math.NaN(), HasKV: true})
		for i := range uint64(50) {
			q := query(p, promptChain(i, 2))
			q.Discount = HomeDiscount
			if got := Best(epoch, p, q); got.First.Slot == slot || got.Second.Slot == slot || math.IsNaN(got.Cost) {
				t.Fatalf("replica %d with a NaN gauge: first %d, second %d, cost %v", slot, got.First.Slot, got.Second.Slot, got.Cost)
			}
		}
	}
}

func TestLoadHasAtLeastOneToken(t *testing.T) {
	p := newPool(1)
	c := promptChain(1, 10)
	warm(p, 0, c)
	q := query(p, c)
	if got := q.LoadOn(0); got.Uncached != 1 || got.Prompt != 640 {
		t.Errorf("a prompt that is held whole: %+v", got)
	}
	q.Prompt = 0
	if got := q.LoadOn(0); got.Uncached != 1 {
		t.Errorf("an empty prompt: %+v", got)
	}
}

func TestRefreshFollowsTheIndex(t *testing.T) {
	p := newPool(3)
	c := promptChain(1, 10)
	q := query(p, c)
	warm(p, 1, c[:4])
	q.Refresh(p)
	if got := Best(epoch, p, q); got.First.Slot != 1 || got.Matched != 4 {
		t.Errorf("picked %d with %d blocks, want 1 with 4", got.First.Slot, got.Matched)
	}
	p.Replicas[1].Index.Reset()
	warm(p, 2, c)
	q.Refresh(p)
	if got := Best(epoch, p, q); got.First.Slot != 2 || got.Matched != 10 {
		t.Errorf("picked %d with %d blocks, want 2 with 10", got.First.Slot, got.Matched)
	}
}

// gateway-api-inference-extension#1497: a replica scraped idle once that then hangs must not keep winning.
func TestSilentReplicaStopsWinning(t *testing.T) {
	p := newPool(3)
	idle := pool.Sample{At: epoch, HasRunning: true, HasWaiting: true, HasKV: true, HasTokens: true}
	for _, r := range p.Replicas {
		r.Observe(epoch, idle)
	}
	type running struct {
		l   *pool.Lease
		end float64
	}
	var live []running
	early, late := 0, 0
	for i := range 300 {
		now := float64(i) / 10
		live = slices.DeleteFunc(live, func(r running) bool {
			if r.end <= now {
				r.l.Release(at(now), true)
			}
			return r.end <= now
		})
		if i%10 == 0 && i > 0 {
			for _, r := range p.Replicas[1:] {
				r.Observe(at(now), pool.Sample{At: at(now), Tokens: float64(i), HasTokens: true, HasKV: true})
			}
		}
		q := &Query{Prompt: 3000, Output: 256, Key: uint64(i), Home: -1}
		q.Lookup(p)
		got := Best(at(now), p, q)
		l := &pool.Lease{}
		p.Charge(at(now), l, got.First, got.Load)
		switch {
		case got.First.Slot != 0:
			live = append(live, running{l, now + 1})
		case now < 5:
			early++
		default:
			late++
		}
	}
	if early == 0 {
		t.Error("the replica got nothing while it still could be idle")
	}
	if late > 5 {
		t.Errorf("the silent replica got %d of the last 250 requests, %d before", late, early)
	}
}

// Answers to one request run at once: it holds its memory for as long as one of them takes.
func TestSeveralAnswersHoldMemoryForOne(t *testing.T) {
	p := newPool(1)
	v := p.Replicas[0].View(epoch)
	q := &Query{Output: 240, Prompts: 1, Answers: 8}
	want := 100*v.Price + p.Replicas[0].Share(340)*30*v.Step*2
	if got := q.cost(&v, p.Replicas[0], 100, 1, 3); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("cost %v, want %v", got, want)
	}
}
