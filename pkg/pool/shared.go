package pool

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/prefix"
)

// Two routers cannot see each other's bulk: it is prefilled within a scrape or two, and until then interactive requests
// run into it. So beside others a router
//
//	keeps bulk to the first k replicas of an order on which all routers agree;
//	takes each bulk request that it sends for 1/own, as the others send theirs: it drains as if theirs went before;
//	expects at least busy * (the mean bulk request's prefill) of waiting there, and on the next replica of the order,
//	as the others' k may be one more; busy = min(rhoB/own/k, 1), with rhoB the prefill seconds of its own bulk that
//	come in a second.

// aloneOwn is the share of the replicas' requests above which a router takes itself to be alone here: the others may be
// a probe, or a client that goes past it.
const aloneOwn = 0.9

// bulkKey is any number on which all routers agree: it names the order.
const bulkKey = 0x62756c6b

// alone reports whether nobody else sends to the pool, or too little to matter for bulk. Own remembers others for some
// seconds after they left; what the replicas ran when each last told shows it at once.
func (p *Pool) alone() bool { return p.Own() > aloneOwn || p.theirs <= (1-aloneOwn)*p.ran }

// bulkOwn is Own as bulk goes by it: 1 as soon as the others have left.
func (p *Pool) bulkOwn() float64 {
	if p.alone() {
		return 1
	}
	return p.Own()
}

// bulkRanks is each slot's place in the order in which replicas take bulk.
func bulkRanks(ids []uint64) []int {
	order, ranks := make([]int, len(ids)), make([]int, len(ids))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Compare(prefix.Score(bulkKey, ids[b]), prefix.Score(bulkKey, ids[a]))
	})
	for place, slot := range order {
		ranks[slot] = place
	}
	return ranks
}

// share enters into the views what the bulk of others means. While all that take bulk fail, no replica is kept free of it.
func (p *Pool) share(now time.Time) {
	k := p.BulkReplicas(now)
	busy := min(p.bulk.read(now)/p.Own()/float64(k), 1)
	least := busy * float64(p.bulkWork)
	taken := false
	for i, rank := range p.bulkRanks {
		taken = taken || rank < k && !p.Replicas[i].health.failing()
	}
	for i, rank := range p.bulkRanks {
		v := &p.views[i]
		v.NoBulk = taken && rank >= k
		if rank <= k {
			v.Behind += max(least-v.Wait, 0)
		}
	}
}
