package route

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/prompt"
)

const (
	// overCap is how many times the policy's cap, 64 bytes for a block of 64 tokens, an Index may take: 83 bytes a block at most
	// (package prefix).
	overCap = 1.3
	// keptAfter is how many times what was in use before a burst may stay after it: as much, but for a few per cent by which
	// maps and slices have grown.
	keptAfter = 1.05
	// keptHalf is what may stay when half of the caches are gone: that half, and a tenth for what a router has besides.
	keptHalf = 0.6
)

// inUse is the bytes in use after a collection.
func inUse() float64 {
	runtime.GC()
	runtime.GC() // what was pooled goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// never is a stream of prompts that do not come twice.
type never struct{ rng *rand.Rand }

func (n never) request(tokens int) *Request {
	c := make(chain.Chain, tokens/chain.BlockTokens)
	for i := range c {
		c[i] = chain.Hash(n.rng.Uint64())
	}
	return &Request{Parsed: &prompt.Prompt{Chain: c, Tokens: tokens}}
}

// memoryCap is the bytes that the policy lets the models of the replicas' caches take: one for each token of KV.
func memoryCap(r *Router) float64 { return float64(len(r.pool.Replicas) * r.pool.Config.KVTokens) }

func routerOf(n, kv int) *Router {
	cfg, _ := pool.Default("8B")
	cfg.KVTokens = kv
	endpoints := make([]string, n)
	for i := range endpoints {
		endpoints[i] = endpoint(i)
	}
	return New(Default(), pool.New("llm", endpoints, cfg))
}

// stream has prompts come, so many a second, each answered when as many as may live have come after it. peak is the bytes in
// use when the last one came, without the prompts of those that live.
func (n never) stream(r *Router, from time.Time, requests, perSecond, live, tokens int) (at time.Time, peak float64) {
	var open []*Decision
	end := func() {
		d := open[0]
		open = slices.Delete(open, 0, 1)
		d.Status = 200
		r.Done(at, d, Answered)
		r.Release(at)
	}
	for i := range requests {
		at = from.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
		if open = append(open, r.Route(at, n.request(tokens))); len(open) > live {
			end()
		}
	}
	peak = inUse() - float64(len(open)*tokens/chain.BlockTokens*8)
	for len(open) > 0 {
		end()
	}
	return at, peak
}

// vllm-project/production-stack#687, llm-d/llm-d-router#1158: the structure of prefixes grew until the process was killed, and a
// small block size made many entries of it. 64 replicas, small and large, each filled twice over with prompts of 32,000
// tokens that never come again; more change nothing.
func TestMemoryOfPromptsThatNeverComeAgain(t *testing.T) {
	for _, kv := range []int{40_000, 421_000} {
		before := inUse()
		r, src := routerOf(64, kv), never{rand.New(rand.NewPCG(687, uint64(kv)))}
		now, most := epoch, 0.0
		for range 2 {
			var peak float64
			now, peak = src.stream(r, now, 1000, 70, 0, 32_000)
			most = max(most, peak-before)
		}
		limit := memoryCap(r)
		t.Logf("%d tokens of KV: %.1f MB of %.1f", kv, most/1e6, limit/1e6)
		if most > overCap*limit {
			t.Errorf("%d tokens of KV: %.1f MB on the heap, the policy's cap is %.1f", kv, most/1e6, limit/1e6)
		}
	}
}

// sgl-project/sglang PR#16734, ai-dynamo/dynamo#11933: a timer that evicts lets a burst between two ticks through, and memory
// stays after the load, and after the workers. Prompts of 100,000 tokens, 4,000 a second, until thirty times what all caches hold
// went through; then two idle minutes, then replicas that restart, then none.
func TestMemoryOfABurst(t *testing.T) {
	const replicas, kv = 16, 421_000
	before := inUse()
	r, src := routerOf(replicas, kv), never{rand.New(rand.NewPCG(16734, 0))}
	limit := memoryCap(r)
	now, full := src.stream(r, epoch, 200, 40, 0, 100_000)
	full -= before
	most := 0.0
	for range 2 {
		var peak float64
		now, peak = src.stream(r, now, 1000, 4000, 100, 100_000)
		most = max(most, peak-before)
	}
	if most > overCap*limit {
		t.Errorf("%.1f MB in the burst, the policy's cap is %.1f", most/1e6, limit/1e6)
	}
	now = now.Add(2 * time.Minute)
	r.Release(now)
	calm := inUse() - before
	if calm > keptAfter*full+1e6 {
		t.Errorf("%.1f MB after two idle minutes, %.1f before the burst", calm/1e6, full/1e6)
	}
	for i := range replicas / 2 {
		for _, tokens := range []float64{2, 1} { // the counter goes back
			r.Observe(now, endpoint(i), pool.Sample{At: now, Tokens: tokens, HasTokens: true})
		}
	}
	half := inUse() - before
	t.Logf("full %.1f MB, in the burst %.1f, after it %.1f, with half the replicas' caches gone %.1f, cap %.1f", full/1e6, most/1e6, calm/1e6, half/1e6, limit/1e6)
	if half > keptHalf*calm {
		t.Errorf("%.1f MB of %.1f stay after half the caches are gone", half/1e6, calm/1e6)
	}
	runtime.KeepAlive(r)
	r = nil
	if left := inUse() - before; left > 1e6 {
		t.Errorf("%.1f MB stay after all replicas are gone", left/1e6)
	}
}
