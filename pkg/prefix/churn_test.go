package prefix

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
)

// kubeai-project/kubeai#447: after days of replicas that come and go the spread is as even as at the start, and a prefix
// has the home that it would have had without those days.
func TestHomesForgetChurn(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 7))
	all, names := keys(5000), ids(14)
	alive := slices.Clone(names[:10])
	for minute := range 72 * 60 {
		if i := rng.IntN(len(alive)); len(alive) > 6 && rng.IntN(2) == 0 {
			alive = slices.Delete(alive, i, i+1)
		} else if name := names[rng.IntN(len(names))]; !slices.Contains(alive, name) {
			alive = slices.Insert(alive, i, name)
		}
		if minute%240 != 239 {
			continue
		}
		counts := make([]int, len(alive))
		for _, k := range all {
			counts[Home(k, alive)]++
		}
		if z := chiSquare(counts, len(all)); z > 5 {
			t.Errorf("after %d min, %d replicas: chi-square %.1f standard deviations above chance: %v", minute, len(alive), z, counts)
		}
	}
	alive = slices.DeleteFunc(alive, func(id uint64) bool { return !slices.Contains(names[:10], id) })
	for _, id := range names[:10] {
		if !slices.Contains(alive, id) {
			alive = append(alive, id)
		}
	}
	for _, k := range all {
		if a, b := alive[Home(k, alive)], names[Home(k, names[:10])]; a != b {
			t.Fatalf("key %x has home %x after churn and %x without", k, a, b)
		}
	}
}

// ai-dynamo/dynamo#1056: routers that each see another part of the traffic, or none of what was before, agree on the home
// of nearly every prompt. A group whose share is within a third of the threshold would not do: its depth is a matter of chance.
func TestRoutersAgreeOnHomes(t *testing.T) {
	const groups, own = 400, 12
	rng := rand.New(rand.NewPCG(10, 56))
	replicas := ids(16)
	old, other, fresh := &Popularity{}, &Popularity{}, &Popularity{}
	home := func(p *Popularity, c chain.Chain) int {
		key, _ := p.Key(c, len(replicas))
		return Home(key, replicas)
	}
	agree, since, n := 0, 0, 0
	for i := range uint64(12_000) {
		c := groupChain(3, 30, own, rng.Uint64N(groups), i%5)
		routers := []*Popularity{old, other}
		if i >= 6000 { // the third starts
			routers = append(routers, fresh)
		}
		if i < 6500 {
			home(routers[rng.IntN(len(routers))], c)
			continue
		}
		n++
		a, b, f := home(old, c), home(other, c), home(fresh, c)
		if a == b {
			agree++
		}
		if a == f {
			since++
		}
	}
	if agree < n*95/100 || since < n*95/100 {
		t.Errorf("of %d prompts two routers agree on %d, and one that just started on %d", n, agree, since)
	}
}

// vllm-project/production-stack#687 and sgl-project/sglang PR#16734: memory grows with prompts that never come again, or
// overshoots between two ticks of a timer, and stays after the load and after its replica.
func TestIndexMemoryIsBounded(t *testing.T) {
	const replicas, capacity, prompt = 64, 2048, 500 // blocks: 32,000 tokens of prompt
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	seed := uint64(0)
	fill := func(all []*Index, prompts int) {
		for range prompts {
			for _, x := range all {
				seed++
				c := promptChain(seed, prompt)
				x.Unpin(c, x.Pin(c, 4), All)
				if used := x.usedLocked(); used > capacity {
					t.Fatalf("%d blocks of %d are used", used, capacity)
				}
			}
		}
	}
	before := heap()
	all := make([]*Index, replicas)
	for i := range all {
		all[i] = NewIndex(capacity)
	}
	fill(all, 6)
	full := heap() - before
	fill(all, 40)
	later := heap() - before
	t.Logf("%.0f bytes for each block", full/replicas/capacity)
	if full > replicas*capacity*128 {
		t.Errorf("a full index takes %.0f bytes for each block, want 128 at most", full/replicas/capacity)
	}
	if later > 1.3*full {
		t.Errorf("%.0f bytes after many more prompts, %.0f when full first", later, full)
	}
	for _, x := range all[:replicas/2] {
		x.Reset()
	}
	if half := heap() - before; half > 0.6*later {
		t.Errorf("%.0f bytes of %.0f stay after half the replicas are gone", half, later)
	}
	runtime.KeepAlive(all)
}
