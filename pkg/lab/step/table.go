package step

import "math/bits"

// table finds the block that carries a hash: open addressing with linear probing, at most half full. Every token's
// sixteenth goes through here several times, and Go's map, which cannot know that it never grows and that the key stands
// in the block, takes three times as long.
type table struct {
	blocks []block
	slots  []int32 // block ids; 0: empty
	shift  int
}

func newTable(blocks []block) *table {
	width := bits.Len(uint(2 * len(blocks)))
	return &table{blocks: blocks, slots: make([]int32, 1<<width), shift: 64 - width}
}

// home is where a hash's probing begins. The multiplication (Knuth's, by 2^64 over the golden ratio) spreads hashes that
// a caller counts up.
func (t *table) home(hash uint64) int { return int(hash * 0x9e3779b97f4a7c15 >> t.shift) }

// find returns the block that carries the hash, 0 for none.
func (t *table) find(hash uint64) int32 {
	for i := t.home(hash); ; i = (i + 1) & (len(t.slots) - 1) {
		id := t.slots[i]
		if id == 0 || t.blocks[id].hash == hash {
			return id
		}
	}
}

// put enters a block whose hash nobody carries.
func (t *table) put(id int32) {
	i := t.home(t.blocks[id].hash)
	for t.slots[i] != 0 {
		i = (i + 1) & (len(t.slots) - 1)
	}
	t.slots[i] = id
}

// drop takes a block out, and closes the gap for those that probed past it.
func (t *table) drop(id int32) {
	mask := len(t.slots) - 1
	i := t.home(t.blocks[id].hash)
	for t.slots[i] != id {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; t.slots[j] != 0; j = (j + 1) & mask {
		// The one at j may move to the gap at i unless its probing begins after i.
		if (j-t.home(t.blocks[t.slots[j]].hash))&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = 0
}
