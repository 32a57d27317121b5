// Package sample draws the numbers that the laboratory's traffic is made of, and tells what many numbers come to. All
// chance comes from the generator given.
package sample

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Between returns a number from low to high, both included; high is not below low.
func Between(rng *rand.Rand, low, high int) int { return low + rng.IntN(high-low+1) }

// Zipf picks one of n ranks, rank k with a probability in proportion to 1/(k+1)^exponent. It keeps their sums.
type Zipf []float64

// NewZipf makes one of at least one rank.
func NewZipf(n int, exponent float64) Zipf {
	z, sum := make(Zipf, n), 0.0
	for k := range z {
		sum += math.Pow(float64(k+1), -exponent)
		z[k] = sum
	}
	return z
}

// Pick draws a rank, 0 to n-1.
func (z Zipf) Pick(rng *rand.Rand) int {
	k, _ := slices.BinarySearch(z, rng.Float64()*z[len(z)-1])
	return min(k, len(z)-1)
}

// Rank is a percentile of sorted values by nearest rank: the least value that at least percent of 100 do not exceed; percent
// is 0 to 100. It is the zero value of none.
func Rank[T any](sorted []T, percent int) (value T) {
	if len(sorted) == 0 {
		return value
	}
	return sorted[max((len(sorted)*percent+99)/100, 1)-1]
}
