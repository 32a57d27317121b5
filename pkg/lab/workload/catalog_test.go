package workload

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// idle is a replica that serves each turn in a second.
func idle(r *Request) time.Duration { return r.At + time.Second }

// all is a workload's requests, its sessions played.
func all(t *testing.T, name string, p Params) []*Request {
	t.Helper()
	i, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	stages, err := i.Stages(p)
	if err != nil {
		t.Fatal(err)
	}
	var rs []*Request
	s := play(InRow(stages), idle)
	for r, ok := s.Next(); ok; r, ok = s.Next() {
		rs = append(rs, r)
	}
	return rs
}

// digest is everything about the requests.
func digest(rs []*Request) uint64 {
	var h xxhash.Digest
	h.Reset()
	put := func(v uint64) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], v)
		h.Write(b[:])
	}
	for _, r := range rs {
		put(uint64(r.At))
		put(uint64(r.Prompt))
		put(uint64(r.Output))
		put(uint64(len(r.Blocks)))
		if n := len(r.Blocks); n > 0 {
			put(r.Blocks[n-1]) // tells of all before it
		}
		h.WriteString(r.Class + "/" + r.Flow)
	}
	return h.Sum64()
}

// TestEveryWorkload: what holds for all of them, at each of their first loads.
func TestEveryWorkload(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			i, _ := Lookup(name)
			if _, err := step.Lookup(i.Profile); err != nil {
				t.Error(err)
			}
			p := Params{Rate: i.Loads[0], Seed: 1, Length: 30 * time.Second}
			rs, single := all(t, name, p), len(i.stages(p)) == 1
			if len(rs) < 70 {
				t.Fatalf("%d requests", len(rs))
			}
			last := time.Duration(0)
			for _, r := range rs {
				if r.At < last || single && r.At >= p.Length {
					t.Fatalf("a request at %v after one at %v, of %v", r.At, last, p.Length)
				}
				last = r.At
				low, high := r.Prompt/step.BlockTokens, (r.Prompt+r.Output)/step.BlockTokens
				if r.Prompt < 1 || r.Output < 1 || len(r.Blocks) != low && len(r.Blocks) != high {
					t.Fatalf("%d blocks for %d and %d tokens", len(r.Blocks), r.Prompt, r.Output)
				}
			}
			if again := all(t, name, p); digest(again) != digest(rs) {
				t.Error("the same seed gives other requests")
			}
			p.Seed = 2
			if other := all(t, name, p); digest(other) == digest(rs) {
				t.Error("another seed gives the same requests")
			}
		})
	}
}

// TestShapes holds the sizes against what is published or promised.
func TestShapes(t *testing.T) {
	for _, c := range []struct {
		name           string
		rate           float64
		prompt, output float64 // means
		share          float64 // tolerance of these
		class          string  // of a share of requests
		classShare     float64
	}{
		{"W3", 20, 7200, 1000, 0, "", 1},
		{"W3-fresh", 20, 7200, 1000, 0, "", 1},
		{"W3b", 20, 9000, 1000, 0, "", 1},
		{"W5-19", 20, 3800, 200, 0.05, "", 1},
		{"W5-35", 20, 7000, 200, 0.05, "", 1},
		{"W5-47", 20, 9400, 200, 0.05, "", 1},
		{"W5-73", 20, 14600, 200, 0.05, "", 1},
		{"W7", 20, 0.8*2000 + 0.2*23000, 240, 0.03, "bulk", 0.2},
		{"W7-0", 40, 2000, 200, 0.02, "interactive", 1},
		{"W10", 40, 1155, 211, 0.03, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			rs := all(t, c.name, Params{Rate: c.rate, Seed: 1, Length: 5 * time.Minute})
			near(t, "rate", float64(len(rs))/300, c.rate, 0.05)
			var prompt, output, class float64
			for _, r := range rs {
				prompt, output = prompt+float64(r.Prompt), output+float64(r.Output)
				if r.Class == c.class {
					class++
				}
			}
			n := float64(len(rs))
			near(t, "prompt", prompt/n, c.prompt, c.share)
			near(t, "output", output/n, c.output, c.share)
			near(t, "class", class/n, c.classShare, 0.05)
		})
	}
}

// TestTextsStayWhenTheRateChanges: what is asked depends on the seed only.
func TestTextsStayWhenTheRateChanges(t *testing.T) {
	for _, name := range []string{"W3", "W3-fresh", "W5-35", "W10", "W7"} {
		slow, fast := all(t, name, Params{Rate: 5, Seed: 3}), all(t, name, Params{Rate: 6, Seed: 3})
		for i, r := range slow {
			f := fast[i]
			if r.Prompt != f.Prompt || r.Output != f.Output || !slices.Equal(r.Blocks, f.Blocks) {
				t.Fatalf("%s: request %d is another at another rate", name, i)
			}
		}
	}
}

// TestGroups: W3 has 150 prefixes and, repeating, 750 prompts; twice the replicas have twice as many.
func TestGroups(t *testing.T) {
	for _, c := range []struct {
		name              string
		replicas          int
		prefixes, prompts int
	}{{"W3", 0, 150, 750}, {"W3", 16, 300, 1500}, {"W3", 1, 19, 95}, {"W3b", 0, 83, 249}} {
		prefixes, prompts := map[uint64]bool{}, map[uint64]bool{}
		for _, r := range all(t, c.name, Params{Rate: 100, Seed: 1, Replicas: c.replicas, Length: 5 * time.Minute}) {
			prefixes[r.Blocks[0]], prompts[r.Blocks[len(r.Blocks)-1]] = true, true
		}
		if len(prefixes) != c.prefixes || len(prompts) != c.prompts {
			t.Errorf("%s on %d: %d prefixes, %d prompts, want %d and %d", c.name, c.replicas, len(prefixes), len(prompts), c.prefixes, c.prompts)
		}
	}
	fresh := map[uint64]bool{}
	rs := all(t, "W3-fresh", Params{Rate: 10, Seed: 1})
	for _, r := range rs {
		fresh[r.Blocks[len(r.Blocks)-1]] = true
	}
	if len(fresh) != len(rs) {
		t.Errorf("%d different prompts in %d requests of W3-fresh", len(fresh), len(rs))
	}
}

func TestLadder(t *testing.T) {
	i, _ := Lookup("b2b-ladder")
	stages, err := i.Stages(Params{Rate: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var rates []float64
	warm := map[uint64]int{}
	for k, s := range stages {
		n, last := 0, time.Duration(0)
		for r, ok := s.Next(); ok; r, ok = s.Next() {
			n, last = n+1, r.At
			if k == 0 {
				warm[r.Blocks[len(r.Blocks)-1]]++
			}
		}
		near(t, "stage length", last.Seconds(), float64(n)/s.Rate, 0.25)
		if s.Warm != (k == 0) {
			t.Errorf("stage %d: warm %t", k, s.Warm)
		}
		if k > 0 {
			rates = append(rates, s.Rate)
		}
		if k == len(stages)-1 && n != 1500 {
			t.Errorf("the last stage has %d requests, 1500 were published", n)
		}
	}
	want := []float64{3, 10, 15, 20, 22, 25, 30, 35, 40, 43, 46, 49, 52, 55, 57, 60}
	if len(rates) != len(want) {
		t.Fatalf("rates %v", rates)
	}
	for k := range want {
		if rates[k] != want[k] {
			t.Errorf("rates %v, want %v", rates, want)
		}
	}
	if len(warm) != 750 {
		t.Errorf("the warm-up sends %d different prompts", len(warm))
	}
	if _, err := New("b2b-ladder", 1, 1, 8); err == nil || !strings.Contains(err.Error(), "17 stages") {
		t.Errorf("New makes one source of a ladder: %v", err)
	}
}

func TestBadParams(t *testing.T) {
	for _, c := range []struct {
		name     string
		rate     float64
		replicas int
		want     string
	}{
		{"W1", 1, 1, "use one of W3, W3-fresh"},
		{"W3", 0, 1, "a load of 0"},
		{"W3", -1, 1, "a load of -1"},
		{"W3", math.NaN(), 1, "a load of NaN"},
		{"W3", math.Inf(1), 1, "a load of +Inf"},
		{"W3", 1, -1, "-1 replicas"},
		{"W3", 1, 5000, "5000 replicas"},
	} {
		if _, err := New(c.name, c.rate, 1, c.replicas); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s at %v on %d: %v, want %q", c.name, c.rate, c.replicas, err, c.want)
		}
	}
	i, _ := Lookup("W3")
	if _, err := i.Stages(Params{Rate: 1, Length: -time.Second}); err == nil {
		t.Error("a negative length is taken")
	}
	if s, err := New("W3", 10, 1, 0); err != nil {
		t.Errorf("no replicas means the usual ones: %v", err)
	} else if r, ok := s.Next(); !ok || r.Prompt != 7200 {
		t.Error("W3 has no first request")
	}
}

// TestSweep: W8 is W7 from 0.3 to 1.3 of a capacity that the fluid model finds.
func TestSweep(t *testing.T) {
	i, _ := Lookup("W8")
	n := len(i.Loads)
	near(t, "range", i.Loads[n-1]/i.Loads[0], 1.3/0.3, 0.01)
	if n != 21 {
		t.Errorf("%d loads, want 21", n)
	}
	near(t, "capacity", i.Loads[14], MixedCapacity(mustProfile(mixedProfile), 8), 0.01)
}

// TestBacklog: bulk comes at its own rate, whatever the interactive load, and bursts leave the mean alone.
func TestBacklog(t *testing.T) {
	capacity := bulkCapacity(8)
	near(t, "bulk capacity, 8 x 32B", capacity, 3.3, 0.1) // 1.26 s of prefill and 1.1 s of decoding each
	for _, c := range []struct {
		name  string
		rate  float64
		times float64
	}{{"W7-0", 15, 0}, {"W7-0.5", 15, 0.5}, {"W7-1", 15, 1}, {"W7-2", 40, 2}, {"W7-burst", 40, 1}, {"W7-burst-0", 40, 0}} {
		length, cv, tolerance := 5*time.Minute, 1.0, 0.05
		if strings.HasPrefix(c.name, "W7-burst") {
			length, cv, tolerance = 15*time.Minute, 13, 0.3
		}
		var front, back, gaps, squares float64
		last := time.Duration(0)
		for _, r := range all(t, c.name, Params{Rate: c.rate, Seed: 1, Length: length}) {
			if r.Class == bulk {
				back++
				continue
			}
			gap := (r.At - last).Seconds()
			front, gaps, squares, last = front+1, gaps+gap, squares+gap*gap, r.At
		}
		near(t, c.name+" bulk", back/length.Seconds(), c.times*capacity, 0.08)
		near(t, c.name+" interactive", front/length.Seconds(), c.rate, tolerance)
		mean := gaps / front
		near(t, c.name+" CV", math.Sqrt(squares/front-mean*mean)/mean, cv, tolerance)
	}
}
