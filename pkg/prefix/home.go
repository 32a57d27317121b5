package prefix

import (
	"sync"

	"github.com/weirproxy/weir/pkg/chain"
)

// Score ranks a replica for a key: the highest score is the key's home (rendezvous hashing, Thaler and
// Ravishankar 1998). It needs no table, so it depends on nothing but the key and the replica's own name:
// two routers, or one before and after a restart, agree on every home whatever order they list replicas in,
// and a replica that leaves moves only its own keys. A ring of points does the same less evenly, and needs a
// table.
func Score(key, replica uint64) uint64 {
	// The finalizer of MurmurHash3: each input bit changes each output bit with probability one half.
	z := key ^ replica
	z = (z ^ z>>33) * 0xff51afd7ed558ccd
	z = (z ^ z>>33) * 0xc4ceb9fe1a85ec53
	return z ^ z>>33
}

// Home returns the index in replicas of the key's home, and none (-1) for no replicas.
func Home(key uint64, replicas []uint64) int {
	best, high := none, uint64(0)
	for i, id := range replicas {
		if s := Score(key, id); best == none || s > high {
			best, high = i, s
		}
	}
	return best
}

const (
	// popularCells is the size of the popularity sketch: 16 times the requests it remembers, so that a block
	// seldom shares its cell with a popular one.
	popularCells = 1 << 16
	// popularWindow is the requests after which all counts are halved (DESIGN.md 4).
	popularWindow = 4000
	// popularShare over the number of replicas is the share of recent requests above which a block is too
	// common to name a home: one replica cannot take them all. More is too shallow for documents behind a prompt that many
	// share, less tears those apart who share a long one (DESIGN.md 4).
	popularShare = 0.1
)

// Popularity counts how many recent requests went through a block, to find the depth at which a chain stops
// being everybody's and starts to name its own group. Safe for concurrent use.
type Popularity struct {
	mu    sync.Mutex
	seen  int // requests since the last halving, plus half of those before
	count [popularCells]uint16
}

// Key counts one request for c and returns the hash that names its home among n replicas: the first block
// seen in fewer than popularShare/n of recent requests, else its last. ok is false for a chain without blocks.
func (p *Popularity) Key(c chain.Chain, n int) (key uint64, ok bool) {
	if len(c) == 0 {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen++
	limit := popularShare * float64(p.seen) / float64(n)
	key = uint64(c[len(c)-1])
	for _, h := range c {
		cell := &p.count[uint64(h)%popularCells]
		before := *cell
		if *cell < 1<<16-1 {
			*cell++
		}
		if float64(before) < limit {
			key = uint64(h)
			break
		}
	}
	if p.seen >= popularWindow {
		p.seen /= 2
		for i := range p.count {
			p.count[i] /= 2
		}
	}
	return key, true
}
