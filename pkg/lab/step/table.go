package step

import "math/bits"

// table finds the block that carries a hash: open addressing with linear probing, at most half full. Every token's
// sixteenth goes through here several times, and Go's map, which cannot know that it never grows, takes three times as
// long.
type table struct {
	slots []slot
	shift int
}

// slot keeps the hash beside the block's id, as each look at the block itself would miss the processor's cache.
type slot struct {
	hash uint64
	id   int32 // 0: empty
}

func newTable(blocks int) *table {
	width := bits.Len(uint(2 * blocks))
	return &table{slots: make([]slot, 1<<width), shift: 64 - width}
}

// home is where a hash's probing begins. The multiplication (Knuth's, by 2^64 over the golden ratio) spreads hashes that
// a caller counts up.
func (t *table) home(hash uint64) int { return int(hash * 0x9e3779b97f4a7c15 >> t.shift) }

// find returns the block that carries the hash, 0 for none.
func (t *table) find(hash uint64) int32 {
	for i := t.home(hash); ; i = (i + 1) & (len(t.slots) - 1) {
		if s := &t.slots[i]; s.id == 0 || s.hash == hash {
			return s.id
		}
	}
}

// put enters a block for a hash, and reports whether it did: another block may carry it.
func (t *table) put(hash uint64, id int32) bool {
	i := t.home(hash)
	for t.slots[i].id != 0 {
		if t.slots[i].hash == hash {
			return false
		}
		i = (i + 1) & (len(t.slots) - 1)
	}
	t.slots[i] = slot{hash, id}
	return true
}

// drop takes a hash out that a block carries, and closes the gap for those that probed past it.
func (t *table) drop(hash uint64) {
	mask := len(t.slots) - 1
	i := t.home(hash)
	for t.slots[i].hash != hash {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; t.slots[j].id != 0; j = (j + 1) & mask {
		// The one at j may move to the gap at i unless its probing begins after i.
		if (j-t.home(t.slots[j].hash))&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = slot{}
}
