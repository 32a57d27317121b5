package workload

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// said makes a request of pieces, one second after the other.
func said(i int, output int, pieces ...piece) *Request {
	t := built(pieces)
	return &Request{At: time.Duration(i) * time.Second, Blocks: t.blocks, Prompt: t.tokens, Output: output}
}

// TestMeasureByHand: three prompts of 160 tokens, the first two the same, the third one shares 80.
func TestMeasureByHand(t *testing.T) {
	pool := Pool{mustProfile("8B"), 2}
	l := list{
		said(0, 10, piece{1, 80}, piece{2, 80}),
		said(1, 10, piece{1, 80}, piece{2, 80}),
		said(2, 40, piece{1, 80}, piece{3, 80}),
	}
	got, err := Measure(&l, pool)
	if err != nil {
		t.Fatal(err)
	}
	if got.Requests != 3 || got.Seconds != 2 || got.Rate != 1 || got.InOut != 8 {
		t.Errorf("measured %+v", got)
	}
	near(t, "repeated", got.Repeated, (160+80)/480.0, 1e-9)
	near(t, "ceiling", got.Ceiling, (144+80)/480.0, 1e-9) // the last block of a full hit is computed
	near(t, "unbounded", got.Unbounded, got.Ceiling, 1e-9)
	near(t, "round robin", got.Spread.Hit, 80/320.0, 1e-9) // the first and the third
	want := []Shared{{Requests: 3, Tokens: 80, End: 80, Share: 160 / 480.0}, {Requests: 2, Tokens: 80, End: 160, Share: 80 / 480.0}}
	if !slices.Equal(got.Top, want) {
		t.Errorf("top %+v, want %+v", got.Top, want)
	}
	if got.Prompt != (Spread{160, 160, 160, 160, 160, 160}) || got.Output != (Spread{20, 10, 10, 40, 40, 40}) {
		t.Errorf("spreads %+v %+v", got.Prompt, got.Output)
	}
}

// TestMeasureCountsTheCache: prompts in a circle that is larger than an LRU cache are never found in it.
func TestMeasureCountsTheCache(t *testing.T) {
	circle := func() *list {
		var l list
		for i := range 60 {
			l = append(l, said(i, 16, piece{uint64(i % 6), 1600}))
		}
		return &l
	}
	p := mustProfile("8B")
	for _, c := range []struct {
		kv  int
		hit float64
	}{{5 * 1616, 0}, {6 * 1616, 54.0 / 60 * 99 / 100}} {
		p.KVTokens = c.kv
		got, err := Measure(circle(), Pool{p, 1})
		if err != nil {
			t.Fatal(err)
		}
		near(t, "ceiling", got.Ceiling, c.hit, 0.001)
		near(t, "unbounded", got.Unbounded, 54.0/60*99/100, 0.001)
	}
}

// TestMeasureFindsAnswers: a second turn finds the first one's answer, which no earlier prompt had.
func TestMeasureFindsAnswers(t *testing.T) {
	first := said(0, 320, piece{1, 160})
	talk := built([]piece{{1, 160}, {2, 320}})
	first.Blocks = talk.blocks
	first.Then = func(end time.Duration) *Request {
		r := said(0, 16, piece{1, 160}, piece{2, 320}, piece{3, 160})
		r.At = end + time.Second
		return r
	}
	got, err := Measure(&list{first}, Pool{mustProfile("8B"), 1})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "repeated", got.Repeated, 160/800.0, 1e-9)
	near(t, "ceiling", got.Ceiling, 480/800.0, 1e-9)
}

func TestMeasureRefuses(t *testing.T) {
	if _, err := Measure(&list{}, Pool{mustProfile("8B"), 1}); !errors.Is(err, ErrNoRequests) {
		t.Errorf("nothing: %v", err)
	}
	if _, err := Measure(&list{said(0, 1, piece{1, 16})}, Pool{mustProfile("8B"), 0}); err == nil {
		t.Error("a pool of no replicas is measured")
	}
	if _, err := Measure(&list{said(0, 1, piece{1, 16})}, Pool{step.Profile{}, 1}); err == nil {
		t.Error("a profile without memory is measured")
	}
	// One request at one moment: no rate, no knee over it, and no division by zero.
	if got, err := Measure(&list{said(0, 1, piece{1, 1})}, Pool{mustProfile("8B"), 4}); err != nil || got.Rate != 0 || !(got.Routed.Knee > 0) {
		t.Errorf("one request: %+v, %v", got, err)
	}
}

// TestPlayKeepsOrder: turns come between the source's requests, each when its session asks for it.
func TestPlayKeepsOrder(t *testing.T) {
	rs := all(t, "W6", Params{Rate: 10, Seed: 1, Length: 2 * time.Minute})
	if !slices.IsSortedFunc(rs, func(a, b *Request) int { return int(a.At - b.At) }) {
		t.Error("played requests are out of order")
	}
	for _, r := range rs {
		if r.Then != nil {
			t.Fatal("a played request has a next turn")
		}
	}
}
