package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestAgenda against a look through all actors, with many equal times.
func TestAgenda(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	for n := 1; n < 40; n++ {
		a, at := newAgenda(n), make([]time.Duration, n)
		for i := range at {
			at[i] = never
		}
		for range 500 {
			i := rng.IntN(n)
			if at[i] = time.Duration(rng.IntN(12)); at[i] == 0 {
				at[i] = never
			}
			a.set(i, at[i])
			want := 0
			for j := range at {
				if at[j] < at[want] {
					want = j
				}
			}
			if got, when := a.first(); got != want || when != at[want] {
				t.Fatalf("%d actors: %d at %v is first, want %d at %v", n, got, when, want, at[want])
			}
		}
	}
}
