package route

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/weirproxy/weir/pkg/pool"
)

// warmFlock is a router that has just started over sixteen replicas that serve for long, listed in an order of its own.
func warmFlock(order uint64) *flock {
	endpoints := make([]string, 16)
	for i := range endpoints {
		endpoints[i] = endpoint(i)
	}
	rand.New(rand.NewPCG(order, 1056)).Shuffle(16, func(i, j int) { endpoints[i], endpoints[j] = endpoints[j], endpoints[i] })
	replica, _ := pool.Default("8B")
	r := New(Default(), pool.New("llm", endpoints, replica))
	f := &flock{r: r, now: epoch, dead: make([]bool, 16), tokens: make([]float64, 16)}
	for i := range f.tokens {
		f.tokens[i] = 1e9
	}
	f.scrape()
	return f
}

// places is the endpoints to which prompts go that nobody has seen.
func (f *flock) places(from uint64) (endpoints []string) {
	slots, _ := f.spread(from)
	for _, slot := range slots {
		endpoints = append(endpoints, f.r.pool.Replicas[slot].Endpoint)
	}
	return endpoints
}

// ai-dynamo/dynamo#1056: where a prompt goes that nobody has seen follows from it and the set of endpoints. Instances that list
// them in different orders, one that has served other prompts for a while and one that has just started agree.
func TestInstancesPlaceAlike(t *testing.T) {
	veteran := warmFlock(1)
	veteran.spread(1 << 30)
	want := veteran.places(0)
	for order := range uint64(5) {
		got := warmFlock(order).places(0)
		same := 0
		for i := range got {
			if got[i] == want[i] {
				same++
			}
		}
		// All agree today. One in twenty may differ: how deep a prompt's home is named goes by what an instance has seen.
		if same < len(want)*95/100 {
			t.Errorf("an instance with order %d agrees on %d of %d", order, same, len(want))
		}
	}
}

// placesKey has the test binary print where it places prompts, and nothing else.
const placesKey = "WEIR_TEST_PLACES"

// Processes place alike: no seed of the process, no order of a map plays a part.
func TestProcessesPlaceAlike(t *testing.T) {
	sum := func() []byte {
		h := xxhash.New()
		for _, e := range warmFlock(2).places(0) {
			_, _ = h.WriteString(e)
		}
		return binary.BigEndian.AppendUint64(nil, h.Sum64())
	}
	if os.Getenv(placesKey) != "" {
		fmt.Printf("places %x\n", sum())
		return
	}
	want := fmt.Appendf(nil, "places %x\n", sum())
	for range 2 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProcessesPlaceAlike$")
		cmd.Env = append(os.Environ(), placesKey+"=1")
		out, err := cmd.Output()
		if err != nil || !bytes.Contains(out, want) {
			t.Errorf("%v: another process says %q, this one %q", err, out, want)
		}
	}
}
