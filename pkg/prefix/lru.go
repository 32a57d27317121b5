package prefix

// Resize makes x the model of a cache of capacity blocks, at least one, evicting what does not fit. Pinned blocks stay until
// their requests end.
func (x *Index) Resize(capacity int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.capacity = max(capacity, 1)
	x.fitLocked()
}

// fitLocked evicts what is over a capacity that shrank.
func (x *Index) fitLocked() {
	for x.usedLocked() > x.capacity && x.evictLocked() {
	}
}

// usedLocked is the blocks that are taken, pinned or not.
func (x *Index) usedLocked() int { return len(x.slots) - len(x.free) + x.reserved }

// roomLocked makes room for one block more, evicting if it must; false when all are pinned.
func (x *Index) roomLocked() bool {
	return x.usedLocked() < x.capacity || x.usedLocked() == x.capacity && x.evictLocked()
}

// evictLocked drops the least recently used block; false when all are pinned.
func (x *Index) evictLocked() bool {
	i := x.oldest
	if i == none {
		return false
	}
	x.unlinkLocked(i)
	x.dropLocked(i)
	return true
}

// takeLocked returns a free slot.
func (x *Index) takeLocked() (int32, bool) {
	if !x.roomLocked() {
		return none, false
	}
	if n := len(x.free); n > 0 {
		i := x.free[n-1]
		x.free = x.free[:n-1]
		return i, true
	}
	x.slots = append(x.slots, block{})
	return int32(len(x.slots) - 1), true
}

// pushLocked makes slot i the most recently used.
func (x *Index) pushLocked(i int32) {
	x.slots[i].prev, x.slots[i].next = x.newest, none
	if x.newest == none {
		x.oldest = i
	} else {
		x.slots[x.newest].next = i
	}
	x.newest = i
}

// unlinkLocked takes slot i out of the LRU list.
func (x *Index) unlinkLocked(i int32) {
	b := &x.slots[i]
	if b.prev == none {
		x.oldest = b.next
	} else {
		x.slots[b.prev].next = b.next
	}
	if b.next == none {
		x.newest = b.prev
	} else {
		x.slots[b.next].prev = b.prev
	}
}
