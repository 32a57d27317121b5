package prefix

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/weirproxy/weir/pkg/chain"
)

// ids names n replicas as package pool does, and keys are hashes as a chain's are.
func ids(n int) []uint64 {
	all := make([]uint64, n)
	for i := range all {
		all[i] = xxhash.Sum64String(fmt.Sprintf("10.0.0.%d:8000", i+1))
	}
	return all
}

func keys(n int) []uint64 {
	all := make([]uint64, n)
	for i := range all {
		all[i] = xxhash.Sum64String(fmt.Sprintf("prefix %d", i))
	}
	return all
}

// chiSquare is the statistic of counts against an even spread, in standard deviations from what chance gives:
// its mean is the degrees of freedom and its variance twice that.
func chiSquare(counts []int, total int) float64 {
	want, sum := float64(total)/float64(len(counts)), 0.0
	for _, c := range counts {
		sum += (float64(c) - want) * (float64(c) - want) / want
	}
	free := float64(len(counts) - 1)
	return (sum - free) / math.Sqrt(2*free)
}

// kubeai-project/kubeai#447: one of ten replicas got 80 requests and the others 1 to 10.
func TestHomesAreBalanced(t *testing.T) {
	all := keys(20_000)
	for n := 2; n <= 64; n++ {
		replicas, counts := ids(n), make([]int, n)
		for _, k := range all {
			counts[Home(k, replicas)]++
		}
		if z := chiSquare(counts, len(all)); z > 5 {
			t.Errorf("%d replicas: chi-square %.1f standard deviations above chance: %v", n, z, counts)
		}
	}
}

// The control: a chi-square that does not see a lopsided spread would pass anything.
func TestChiSquareSeesSkew(t *testing.T) {
	counts := make([]int, 10)
	for _, k := range keys(5000) {
		counts[k%11%10]++ // one in ten gets two elevenths
	}
	if z := chiSquare(counts, 5000); z < 5 {
		t.Errorf("a double share for one of ten is %.1f standard deviations", z)
	}
}

// ai-dynamo/dynamo#1056: two routers, or one before and after a restart, list replicas in different orders.
func TestHomeDoesNotDependOnOrder(t *testing.T) {
	replicas := ids(16)
	mixed := slices.Clone(replicas)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	for _, k := range keys(5000) {
		if a, b := replicas[Home(k, replicas)], mixed[Home(k, mixed)]; a != b {
			t.Fatalf("key %x has home %x in one order and %x in another", k, a, b)
		}
	}
}

func TestOnlyTheLeaversKeysMove(t *testing.T) {
	replicas := ids(16)
	for leaver := range replicas {
		left := slices.Delete(slices.Clone(replicas), leaver, leaver+1)
		moved := 0
		for _, k := range keys(2000) {
			before, after := replicas[Home(k, replicas)], left[Home(k, left)]
			switch {
			case before == replicas[leaver]:
				moved++
			case before != after:
				t.Fatalf("key %x moved from %x, which stayed, to %x", k, before, after)
			}
		}
		if moved < 2000/16/2 || moved > 2000/16*2 {
			t.Errorf("replica %d had %d of 2000 keys", leaver, moved)
		}
	}
}

func TestHomeIsTheHighestScore(t *testing.T) {
	replicas := ids(9)
	for _, k := range keys(500) {
		home := Home(k, replicas)
		for i, id := range replicas {
			if Score(k, id) > Score(k, replicas[home]) {
				t.Fatalf("key %x: replica %d scores above home %d", k, i, home)
			}
		}
	}
	if h := Home(1, nil); h != -1 {
		t.Errorf("home among no replicas = %d, want -1", h)
	}
	if h := Home(1, ids(1)); h != 0 {
		t.Errorf("home among one = %d, want 0", h)
	}
}

// groupChain is what everybody shares, what the group shares, and what is the request's own.
func groupChain(shared, group, own int, g, r uint64) chain.Chain {
	c := promptChain(1000, shared)
	c = append(c, promptChain(2000+g, group)...)
	return append(c, promptChain(3000+1e6*g+r, own)...)
}

// A system prompt that everybody sends names no home: the first block of the group does.
func TestPopularityPassesOverWhatEverybodyShares(t *testing.T) {
	const groups, n = 200, 8
	rng := rand.New(rand.NewPCG(5, 5))
	p := &Popularity{}
	right := 0
	for i := range uint64(6000) {
		g := rng.Uint64N(groups)
		c := groupChain(4, 3, 2, g, i)
		key, ok := p.Key(c, n)
		if !ok {
			t.Fatal("no key for a chain with blocks")
		}
		if i >= 1000 && key == uint64(c[4]) { // 1 in 200 is below 0.1 in 8
			right++
		}
	}
	if right < 4900 {
		t.Errorf("%d of 5000 keys were the group's first block", right)
	}
}

// A group with a thirtieth of all requests is above 0.1/8, so its own members spread; among two replicas it is not.
func TestPopularityThresholdDependsOnReplicas(t *testing.T) {
	for _, c := range []struct {
		n     int
		depth int // index of the block that names the home
	}{{2, 4}, {8, 7}} {
		p := &Popularity{}
		at := 0
		for i := range uint64(3000) {
			ch := groupChain(4, 3, 2, i%30, i)
			key, _ := p.Key(ch, c.n)
			if i >= 1000 && key == uint64(ch[c.depth]) {
				at++
			}
		}
		if at < 1990 {
			t.Errorf("%d replicas: %d of 2000 keys were block %d", c.n, at, c.depth)
		}
	}
}

func TestPopularityExactCounts(t *testing.T) {
	p := &Popularity{}
	c := chain.Chain{1, 2, 3}
	// With one replica the limit at request k is 0.1*k. A request counts the blocks up to its key.
	for i, want := range []uint64{
		1, // block 1 is new
		2, // limit 0.2: block 1 seen in 1; block 2 is new
		3, // limit 0.3: block 1 seen in 2, block 2 in 1; block 3 is new
		3, // limit 0.4: block 1 seen in 3, block 2 in 2, block 3 in 1
	} {
		if key, ok := p.Key(c, 1); !ok || key != want {
			t.Errorf("request %d: key %d, %v, want %d", i+1, key, ok, want)
		}
	}
	if _, ok := p.Key(nil, 1); ok {
		t.Error("a chain without blocks has a key")
	}
	if p.seen != 4 {
		t.Errorf("%d requests seen, want 4: a chain without blocks counts for nothing", p.seen)
	}
}

// The last block names the home of a chain whose every block is common.
func TestPopularityOfOneRepeatedPrompt(t *testing.T) {
	p := &Popularity{}
	c := promptChain(1, 5)
	var key uint64
	for range 100 {
		key, _ = p.Key(c, 8)
	}
	if key != uint64(c[4]) {
		t.Errorf("key %x, want the last block %x", key, c[4])
	}
}

func TestPopularityHalves(t *testing.T) {
	p := &Popularity{}
	c := chain.Chain{7}
	for range popularWindow - 1 {
		p.Key(c, 1)
	}
	if p.seen != popularWindow-1 || p.count[7] != popularWindow-1 {
		t.Fatalf("seen %d, count %d before the window's end", p.seen, p.count[7])
	}
	p.Key(c, 1)
	if p.seen != popularWindow/2 || p.count[7] != popularWindow/2 {
		t.Errorf("seen %d, count %d after it, want half of %d", p.seen, p.count[7], popularWindow)
	}
	// A group that nobody asks for any more is forgotten, and one that took its place counts.
	other := chain.Chain{8}
	for range 10 * popularWindow {
		p.Key(other, 1)
	}
	if p.count[7] > popularWindow/1000 {
		t.Errorf("count %d of a block not seen for 10 windows", p.count[7])
	}
}
