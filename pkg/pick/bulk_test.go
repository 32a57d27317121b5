package pick

import (
	"testing"

	"github.com/weirproxy/weir/pkg/pool"
)

// Bulk on some replicas does not make a miss dearer on the others to an interactive request, as nobody queues behind it
// there: behind one other at home it goes elsewhere, where bulk stays.
func TestBulkDoesNotPriceAMiss(t *testing.T) {
	c := promptChain(1, 20) // 1,280 tokens
	for _, beside := range []bool{false, true} {
		p := newPool(4)
		q := query(p, c)
		warm(p, q.Home, c)
		var talk pool.Lease
		p.Charge(epoch, &talk, p.Replicas[q.Home], pool.Load{Prompt: 2500, Uncached: 2500, Output: 100})
		for i := range 2 {
			l := &pool.Lease{}
			p.Charge(epoch, l, p.Replicas[(q.Home+1+i)%4], pool.Load{Prompt: 30_000, Uncached: 30_000, Output: 100, Bulk: beside})
		}
		q.Lookup(p)
		if got := Best(epoch, p, q); (got.First.Slot != q.Home) != beside {
			t.Errorf("bulk %v: on %d, home is %d", beside, got.First.Slot, q.Home)
		}
		q.Bulk = true
		if got := Best(epoch, p, q); got.First.Slot != q.Home {
			t.Errorf("bulk %v: bulk goes on %d, home is %d", beside, got.First.Slot, q.Home)
		}
	}
}
