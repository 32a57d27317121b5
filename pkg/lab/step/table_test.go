package step

import (
	"math/rand/v2"
	"testing"
)

// used is how many slots hold a block.
func (t *table) used() (n int) {
	for _, s := range t.slots {
		if s.id != 0 {
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
		table, truth, free := newTable(n+1), map[uint64]int32{}, []int32{}
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
				if table.put(hash, id+1) {
					t.Fatalf("%x is entered twice", hash)
				}
				table.drop(hash)
				delete(truth, hash)
				free = append(free, id)
			case len(free) > 0:
				id, free = free[len(free)-1], free[:len(free)-1]
				if !table.put(hash, id) {
					t.Fatalf("%x is not entered", hash)
				}
				truth[hash] = id
			}
			if table.used() != len(truth) {
				t.Fatalf("%d entries, %d are in", table.used(), len(truth))
			}
		}
	}
}
