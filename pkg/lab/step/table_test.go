package step

import (
	"math/rand/v2"
	"testing"
)

// used is how many slots hold a block.
func (t *table) used() (n int) {
	for _, id := range t.slots {
		if id != 0 {
			n++
		}
	}
	return n
}

// TestTable holds the table to a map through random entries and removals, with hashes that collide: few different ones,
// and ones that differ in their high bits alone.
func TestTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		n := 1 + rng.IntN(40)
		blocks := make([]block, n+1)
		table, truth, free := newTable(blocks), map[uint64]int32{}, []int32{}
		for id := range n {
			free = append(free, int32(id+1))
		}
		pool := make([]uint64, 1+rng.IntN(3*n))
		for i := range pool {
			pool[i] = rng.Uint64()<<uint(rng.IntN(60)) | 1<<63
		}
		for range 2000 {
			hash := pool[rng.IntN(len(pool))]
			id, ok := truth[hash]
			if got := table.find(hash); got != id {
				t.Fatalf("%d blocks: %x is found at %d, not %d", n, hash, got, id)
			}
			switch {
			case ok:
				table.drop(id)
				blocks[id].hash = 0
				delete(truth, hash)
				free = append(free, id)
			case len(free) > 0:
				id, free = free[len(free)-1], free[:len(free)-1]
				blocks[id].hash = hash
				table.put(id)
				truth[hash] = id
			}
			if table.used() != len(truth) {
				t.Fatalf("%d entries, %d are in", table.used(), len(truth))
			}
		}
	}
}
