package extproc_test

import (
	"slices"
	"testing"

	"github.com/weirproxy/weir/pkg/extproc"
)

// TestEveryOrder plays every order of up to three messages after the headers in every mode, of a request that waits
// for a seat, a tunnel that does, and one of a cluster that is not weir's: whatever the order, play wants one outcome and no
// lease left, which a second decision over the first would leave.
func TestEveryOrder(t *testing.T) {
	b := newBench(t, extproc.Config{BodyLimit: 4000, BodyMemory: 8000})
	kinds := []byte{fzHeaders, fzHeaders | fzEnd, fzBody, fzBody | fzEnd, fzTrailers, fzAnswer}
	orders := [][]byte{{fzHeaders}, {fzHeaders | fzEnd}}
	for at := 0; len(orders[at]) < 4; at++ {
		for _, kind := range kinds {
			orders = append(orders, append(slices.Clone(orders[at]), kind))
		}
	}
	for mode := range byte(5) {
		for _, with := range [][3]byte{{0, 0, 1}, {0xC0, 0, 1}, {0, 6, 0}} {
			for _, order := range orders {
				b.play(t, append([]byte{mode, with[0], with[1], with[2]}, order...))
				if t.Failed() {
					t.Fatalf("mode %d, with %v: the order %x", mode, with, order)
				}
			}
		}
	}
}
