package sample

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestBetween(t *testing.T) {
	rng, seen := rand.New(rand.NewPCG(1, 2)), map[int]int{}
	for range 3000 {
		seen[Between(rng, -1, 1)]++
	}
	if len(seen) != 3 || seen[-1] < 900 || seen[1] < 900 || Between(rng, 4, 4) != 4 {
		t.Errorf("drawn %v", seen)
	}
}

func TestZipf(t *testing.T) {
	rng, z := rand.New(rand.NewPCG(5, 6)), NewZipf(100, 0.8)
	var n [100]float64
	for range 500_000 {
		n[z.Pick(rng)]++
	}
	for _, k := range []int{1, 9, 99} {
		if got, want := n[0]/n[k], math.Pow(float64(k+1), 0.8); math.Abs(got-want) > 0.06*want {
			t.Errorf("rank 0 is drawn %.2f times as often as rank %d, want %.2f", got, k, want)
		}
	}
	if NewZipf(1, 1).Pick(rng) != 0 {
		t.Error("the only rank is not drawn")
	}
}

func TestRank(t *testing.T) {
	ten := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for percent, want := range map[int]float64{0: 1, 10: 1, 50: 5, 90: 9, 91: 10, 99: 10, 100: 10} {
		if got := Rank(ten, percent); got != want {
			t.Errorf("%d: %v, want %v", percent, got, want)
		}
	}
	if Rank([]int{}, 50) != 0 || Rank([]int{7}, 99) != 7 {
		t.Error("of none or of one")
	}
	many := make([]int, 700) // 0.99*700 is more than 693 in floating point
	for i := range many {
		many[i] = i + 1
	}
	if got := Rank(many, 99); got != 693 {
		t.Errorf("p99 of 700: %d, want 693", got)
	}
}
