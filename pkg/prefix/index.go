// Package prefix knows which replica probably holds which prefix block, and which replica is a prefix's
// home when nobody holds it.
//
// An Index models the prefix cache of one replica: an LRU over blocks with the replica's own capacity, 56 to 83 bytes a block.
// Blocks of live requests are pinned; what a finished request leaves is evicted from its tail first, as vLLM
// frees blocks in reverse order. So the blocks held of any chain are always its first ones, which lets Match
// search by halves. Within 3 % of the true cache below the knee (DESIGN.md 4).
package prefix

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/weirproxy/weir/pkg/chain"
)

// none ends a list of slots.
const none = -1

// block is one slot of an Index. A slot that is not pinned stands in the LRU list.
type block struct {
	hash       chain.Hash
	prev, next int32
	pins       int32
	named      bool // in the map; the blocks of an answer are not, as nobody can match them
	computed   bool // the replica has computed it for some request that used it
}

// Index models the prefix cache of one replica. Safe for concurrent use.
type Index struct {
	version atomic.Uint64 // counts changes of what Match can answer
	pinned  atomic.Int64  // blocks that live requests use
	others  atomic.Uint64 // bits of SetOthers

	mu       sync.RWMutex
	capacity int // blocks
	slots    []block
	free     []int32
	byHash   map[chain.Hash]int32
	oldest   int32 // next to be evicted
	newest   int32
	reserved int // blocks of live requests without a hash: partial blocks and answers
	resets   int
	owed     float64 // blocks of others that are yet to go through
}

// NewIndex returns the empty model of a cache of capacity blocks, at least one.
func NewIndex(capacity int) *Index {
	x := &Index{capacity: max(capacity, 1)}
	x.clear()
	return x
}

func (x *Index) clear() {
	x.slots, x.free, x.byHash = nil, nil, map[chain.Hash]int32{}
	x.oldest, x.newest, x.reserved, x.owed = none, none, 0, 0
}

// Version changes whenever Match may answer differently.
func (x *Index) Version() uint64 { return x.version.Load() }

// Pinned is the blocks that live requests use, shared ones counted once.
func (x *Index) Pinned() int { return int(x.pinned.Load()) }

// Match returns how many leading blocks of c the replica holds.
func (x *Index) Match(c chain.Chain) int { return x.MatchNear(c, 0) }

// MatchNear is Match for a caller that has a guess: of many replicas most hold as much of a prompt as the one before, and then
// two lookups do. Each is a miss of the CPU's cache where there are hundreds of indexes. Any guess is allowed, below 0 and above
// len(c) too, and none changes the answer.
func (x *Index) MatchNear(c chain.Chain, guess int) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.matchLocked(c, guess)
}

// TryMatch is MatchNear for a caller that must not wait for a writer: ok is false when one is at work.
func (x *Index) TryMatch(c chain.Chain, guess int) (n int, ok bool) {
	if !x.mu.TryRLock() {
		return 0, false
	}
	defer x.mu.RUnlock()
	return x.matchLocked(c, guess), true
}

func (x *Index) matchLocked(c chain.Chain, guess int) int {
	lo, hi := 0, len(c) // blocks below lo are held, the one at hi is not
	if guess > 0 && guess <= hi {
		if !x.holdsLocked(c[guess-1]) {
			hi = guess - 1
		} else if lo = guess; lo < hi {
			if !x.holdsLocked(c[lo]) {
				return lo
			}
			lo++
		}
	}
	if lo == 0 && lo < hi {
		if !x.holdsLocked(c[0]) {
			return 0
		}
		lo = 1
	}
	if lo < hi {
		if x.holdsLocked(c[hi-1]) {
			return hi
		}
		hi--
	}
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if x.holdsLocked(c[mid]) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func (x *Index) holdsLocked(h chain.Hash) bool {
	_, ok := x.byHash[h]
	return ok
}

// All is every block that Pin took, for Unpin.
const All = math.MaxInt

// Pins is what Pin took, for Unpin. The zero value is nothing.
type Pins struct {
	named, anonymous int // blocks of the chain, and without a hash
	resets           int // Index.resets then: a Reset in between dropped them
}

// Pin takes the blocks of c and extra blocks without a hash for a live request, evicting the least recently
// used. It takes fewer when pinned blocks fill the cache. The caller passes what it returns to Unpin, once,
// when the request ends.
func (x *Index) Pin(c chain.Chain, extra int) Pins {
	x.mu.Lock()
	defer x.mu.Unlock()
	named, anonymous, fresh := 0, 0, 0
	for _, h := range c {
		i, ok := x.byHash[h]
		if !ok {
			if i, ok = x.takeLocked(); !ok {
				break
			}
			x.slots[i] = block{hash: h, prev: none, next: none, named: true}
			x.byHash[h] = i
			fresh++
			x.version.Add(1)
		} else if x.slots[i].pins == 0 {
			x.unlinkLocked(i)
		}
		if x.slots[i].pins == 0 {
			x.pinned.Add(1)
		}
		x.slots[i].pins++
		named++
	}
	for anonymous < extra && x.roomLocked() {
		x.reserved++
		anonymous++
	}
	x.pinned.Add(int64(anonymous))
	x.passLocked(fresh + anonymous)
	return Pins{named, anonymous, x.resets}
}

// Unpin gives back what Pin took of c. The replica has computed the first so many of them, the chain's blocks before those
// without a hash: they stay in the cache until evicted, the tail of the answer first and the head of the prompt last. Of the
// rest those go that it has computed for no other request.
func (x *Index) Unpin(c chain.Chain, p Pins, computed int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p.resets != x.resets {
		return
	}
	x.reserved -= p.anonymous
	x.pinned.Add(-int64(p.anonymous))
	for range min(max(computed-p.named, 0), p.anonymous) {
		i, ok := x.takeLocked() // fails only after a Resize that shrank: else the place that was reserved is free
		if !ok {
			break
		}
		x.slots[i] = block{prev: none, next: none}
		x.pushLocked(i)
	}
	for k := p.named - 1; k >= 0; k-- {
		i := x.byHash[c[k]]
		b := &x.slots[i]
		b.computed = b.computed || k < computed
		if b.pins--; b.pins > 0 {
			continue
		}
		x.pinned.Add(-1)
		if b.computed {
			x.pushLocked(i)
		} else {
			x.dropLocked(i)
		}
	}
	x.fitLocked()
}

// SetOthers tells that others than weir use the cache: beside each block that weir has computed there, so many of theirs
// go through it, from now on.
func (x *Index) SetOthers(blocks float64) { x.others.Store(math.Float64bits(blocks)) }

// passLocked lets what others compute meanwhile go through the cache, beside n blocks of weir's. Nobody here can match it,
// and it evicts nothing that is pinned.
func (x *Index) passLocked(n int) {
	others := math.Float64frombits(x.others.Load())
	if others <= 0 {
		return
	}
	x.owed += float64(n) * others
	for ; x.owed >= 1; x.owed-- {
		i, ok := x.takeLocked()
		if !ok {
			x.owed = 0
			return
		}
		x.slots[i] = block{prev: none, next: none}
		x.pushLocked(i)
	}
}

// dropLocked forgets the block in slot i, which is not in the LRU list.
func (x *Index) dropLocked(i int32) {
	if x.slots[i].named {
		delete(x.byHash, x.slots[i].hash)
		x.version.Add(1)
	}
	x.free = append(x.free, i)
}

// Reset drops everything, as a restarted replica does.
func (x *Index) Reset() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.clear()
	x.resets++
	x.pinned.Store(0)
	x.version.Add(1)
}
