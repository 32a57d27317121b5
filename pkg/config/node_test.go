package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestMergesWithinMergesAreCheap merges each mapping twice into the next: 2^64 visits, were each repeated.
func TestMergesWithinMergesAreCheap(t *testing.T) {
	var b strings.Builder
	b.WriteString("m0: &m0 {k: v}\n")
	for i := 1; i <= 64; i++ {
		fmt.Fprintf(&b, "m%d: &m%d {<<: [*m%d, *m%d], k%d: v}\n", i, i, i-1, i-1, i)
	}
	all := Pairs(parse(t, b.String()))
	if got := len(Pairs(all[64].Value)); got != 65 {
		t.Errorf("the last mapping has %d keys, want 65", got)
	}
}
