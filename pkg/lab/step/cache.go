package step

// cache is the KV blocks: how often each is held, which hash it carries, and the free ones in the order in
// which they were freed. Block ids are 1..n; block 0 is the head of the free list, a ring.
type cache struct {
	blocks []block
	byHash *table
	free   int
	named  int // blocks that got a hash so far
}

type block struct {
	hash       uint64 // 0: carries none
	refs       int32
	prev, next int32 // neighbours in the free list while refs is 0
}

func newCache(n int) *cache {
	c := &cache{blocks: make([]block, n+1)}
	c.byHash = newTable(len(c.blocks))
	for id := range n {
		c.push(int32(id + 1))
	}
	return c
}

func (c *cache) size() int { return len(c.blocks) - 1 }

// match returns the blocks that carry the longest run of hashes, and how many of them nobody holds. found
// is what an earlier call for the same hashes returned: a look at the block itself tells whether it still
// carries its hash, at a tenth of the price of the map, and the head of a blocked queue asks every step.
func (c *cache) match(hashes []uint64, found []int32) (ids []int32, idle int) {
	n := 0
	for n < len(found) && n < len(hashes) && c.blocks[found[n]].hash == hashes[n] {
		n++
	}
	ids = found[:n]
	for _, h := range hashes[n:] {
		id := c.byHash.find(h)
		if id == 0 {
			break
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		if c.blocks[id].refs == 0 {
			idle++
		}
	}
	return ids, idle
}

// hold adds a reference to each block.
func (c *cache) hold(ids []int32) {
	for _, id := range ids {
		b := &c.blocks[id]
		if b.refs == 0 {
			c.unlink(b)
		}
		b.refs++
	}
}

// take appends n blocks to dst, the least recently freed ones, which lose their hash. The caller has seen
// that n are free.
func (c *cache) take(n int, dst []int32) []int32 {
	for range n {
		id := c.blocks[0].next
		b := &c.blocks[id]
		c.unlink(b)
		if b.hash != 0 {
			c.byHash.drop(b.hash)
			b.hash = 0
		}
		b.refs = 1
		dst = append(dst, id)
	}
	return dst
}

// name gives a block its hash, unless another block carries it already.
func (c *cache) name(id int32, hash uint64) {
	if hash != 0 && c.byHash.put(hash, id) {
		c.blocks[id].hash = hash
		c.named++
	}
}

// release drops a reference to each block, the last one first, so that the end of a prompt, which fewer
// others share, is overwritten before its beginning.
func (c *cache) release(ids []int32) {
	for i := len(ids) - 1; i >= 0; i-- {
		b := &c.blocks[ids[i]]
		if b.refs--; b.refs == 0 {
			c.push(ids[i])
		}
	}
}

func (c *cache) push(id int32) {
	head, b := &c.blocks[0], &c.blocks[id]
	b.prev, b.next = head.prev, 0
	c.blocks[head.prev].next = id
	head.prev = id
	c.free++
}

func (c *cache) unlink(b *block) {
	c.blocks[b.prev].next = b.next
	c.blocks[b.next].prev = b.prev
	c.free--
}
