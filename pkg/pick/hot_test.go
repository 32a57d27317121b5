package pick

import (
	"slices"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/pool"
)

// vllm-project/router PR#238: one hot replica, whatever it is that makes it hot, turned affinity off for every request.
func TestOneHotReplicaLeavesTheOthersTheirAffinity(t *testing.T) {
	for name, heat := range map[string]func(p *pool.Pool, r *pool.Replica){
		"backlog of twice the knee": func(p *pool.Pool, r *pool.Replica) {
			for range 10 {
				charge(p, epoch, r.Slot, 4000) // 40,000 tokens: over twice the knee of 18,000
			}
			if v := r.View(epoch); v.Wait < 2*v.Tau {
				t.Fatalf("it waits %v s, not twice tau %v", v.Wait, v.Tau)
			}
		},
		"no KV and a long queue": func(p *pool.Pool, r *pool.Replica) {
			charge(p, epoch, r.Slot, 4000)
			p.Observe(epoch, r, pool.Sample{At: epoch, KV: 1, HasKV: true, Running: 100, HasRunning: true, Waiting: 50, HasWaiting: true})
		},
		"no seat": func(p *pool.Pool, r *pool.Replica) {
			for range 400 {
				charge(p, epoch, r.Slot, 1)
			}
		},
		"down": func(_ *pool.Pool, r *pool.Replica) { r.Refuse(epoch) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(8)
			chains := make([]chain.Chain, 8)
			for i := range chains {
				chains[i] = promptChain(uint64(i), 60)
				warm(p, i, chains[i])
			}
			heat(p, p.Replicas[0])
			if v := p.Replicas[0].View(epoch); v.Below() && !v.Down {
				t.Fatal("it is not hot")
			}
			for i := 1; i < 8; i++ {
				q := query(p, append(slices.Clone(chains[i]), promptChain(uint64(100+i), 5)...))
				if got := Best(epoch, p, q); got.First.Slot != i || got.Matched != 60 {
					t.Errorf("the prefix on idle replica %d went to %d, %d blocks matched", i, got.First.Slot, got.Matched)
				}
			}
		})
	}
}
