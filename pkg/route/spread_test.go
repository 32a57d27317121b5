package route

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/prompt"
)

// flock is a router over replicas that die and come back, and its time.
type flock struct {
	r      *Router
	now    time.Time
	dead   []bool
	tokens []float64 // counter of each
}

func newFlock(r *Router) *flock {
	n := len(r.pool.Replicas)
	f := &flock{r: r, now: epoch, dead: make([]bool, n), tokens: make([]float64, n)}
	f.scrape()
	return f
}

// scrape reads all replicas' metrics.
func (f *flock) scrape() {
	for i, at := range f.r.pool.Replicas {
		if f.dead[i] {
			f.r.Refuse(f.now, at.Endpoint)
			continue
		}
		f.r.Observe(f.now, at.Endpoint, pool.Sample{At: f.now, HasRunning: true, HasWaiting: true, HasKV: true, Tokens: f.tokens[i], HasTokens: true})
	}
}

// send has one request of a prompt come and be answered at once, and returns where it went.
func (f *flock) send(c chain.Chain) (slot int) {
	d := f.r.Route(f.now, &Request{Parsed: &prompt.Prompt{Chain: c, Tokens: len(c) * chain.BlockTokens}})
	slot = d.Choice.First.Slot
	d.Status = 200
	if f.dead[slot] {
		d.Status = 503
	} else {
		f.tokens[slot] += 1000
	}
	f.r.Done(f.now, d, Answered)
	return slot
}

// unseen is a prompt of ten blocks that no other number has a block of.
func unseen(number uint64) chain.Chain {
	rng := rand.New(rand.NewPCG(number, 447))
	c := make(chain.Chain, 10)
	for i := range c {
		c[i] = chain.Hash(rng.Uint64())
	}
	return c
}

// spread sends 5,000 prompts that nobody has seen.
func (f *flock) spread(from uint64) (slots, counts []int) {
	counts = make([]int, len(f.dead))
	for k := range uint64(5000) {
		if f.now = f.now.Add(100 * time.Millisecond); k%10 == 0 {
			f.scrape()
		}
		slot := f.send(unseen(from + k))
		slots = append(slots, slot)
		counts[slot]++
	}
	return slots, counts
}

// churn is three days in which each minute a replica dies or comes back with an empty cache, while some prompts are sent.
func (f *flock) churn(rng *rand.Rand) {
	const least = 4
	for minute := range 72 * 60 {
		i, alive := rng.IntN(len(f.dead)), 0
		for _, dead := range f.dead {
			if !dead {
				alive++
			}
		}
		if f.dead[i] || alive > least {
			f.dead[i], f.tokens[i] = !f.dead[i], 0
		}
		for range 6 {
			f.now = f.now.Add(10 * time.Second)
			f.scrape()
			f.send(unseen(1<<40 + rng.Uint64N(40)))
			f.send(unseen(1<<41 + uint64(minute)))
		}
	}
	clear(f.dead)
	for range 30 { // whoever was out is tried again, and succeeds
		f.now = f.now.Add(time.Second)
		f.scrape()
		f.send(unseen(1<<42 + rng.Uint64()>>32))
	}
}

// kubeai-project/kubeai#447: of ten replicas one took 80 requests and the others 1 to 10, until the router was started anew.
// Prompts that nobody has seen spread over an idle pool as evenly as chance has it, and do so after three days in which
// replicas died and came back; each goes where a router without those days sends it.
func TestSpreadForgetsChurn(t *testing.T) {
	old, fresh := newFlock(newRouter(10, Default())), newFlock(newRouter(10, Default()))
	even := func(when string, counts []int) {
		t.Helper()
		if z := chiSquare(counts); z > 5 {
			t.Errorf("%s: chi-square %.1f standard deviations above chance: %v", when, z, counts)
		}
		t.Logf("%s: chi-square %+.1f standard deviations, %v", when, chiSquare(counts), counts)
	}
	_, before := old.spread(0)
	even("before", before)
	old.churn(rand.New(rand.NewPCG(4, 47)))
	slots, after := old.spread(1 << 20)
	even("after", after)
	same := 0
	want, _ := fresh.spread(1 << 20)
	for i := range slots {
		if slots[i] == want[i] {
			same++
		}
	}
	// Of 5,000, 2 go elsewhere, one of them as its first block shares a cell of the popularity sketch with a prompt that came often
	// in those days. 5 may.
	if same < len(slots)*999/1000 {
		t.Errorf("%d of %d go where a fresh router sends them", same, len(slots))
	}
}

// chiSquare is the statistic of counts against an even spread, in standard deviations from what chance gives.
func chiSquare(counts []int) float64 {
	total, free := 0, float64(len(counts)-1)
	for _, n := range counts {
		total += n
	}
	want, sum := float64(total)/float64(len(counts)), 0.0
	for _, n := range counts {
		sum += (float64(n) - want) * (float64(n) - want) / want
	}
	return (sum - free) / math.Sqrt(2*free)
}
