package step

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func mustNew(t testing.TB, p Profile) *Replica {
	t.Helper()
	r, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustLookup(t testing.TB, name string) Profile {
	t.Helper()
	p, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// drain advances event by event until the replica is idle.
func drain(r *Replica) {
	for t, ok := r.Next(); ok; t, ok = r.Next() {
		r.Advance(t)
	}
}

func submit(t testing.TB, r *Replica, now time.Duration, seqs ...*Seq) {
	t.Helper()
	for _, s := range seqs {
		if err := r.Submit(now, s); err != nil {
			t.Fatal(err)
		}
	}
}

// hashes names n blocks of a text of its own.
func hashes(text uint64, n int) []uint64 {
	h := make([]uint64, n)
	for i := range h {
		h[i] = text<<32 | uint64(i+1)
	}
	return h
}

// TestAlone holds the formula of the package comment against figures worked out by hand.
func TestAlone(t *testing.T) {
	for _, c := range []struct {
		profile        string
		prompt, output int
		first, last    time.Duration
	}{
		// 15 ms + 6.9 + 0.0044 + 1000*0.0278
		{"8B", 1000, 1, 49_704_400, 49_704_400},
		// then 6.9044 + 0.000076*1001, *1002, *1003
		{"8B", 1000, 4, 49_704_400, 49_704_400 + 3*6_904_400 + 76*(1001+1002+1003)},
		// 15 + 15.5 + 0.0044 + 100*0.055; then 15.5044 + 0.00005*101
		{"32B", 100, 2, 36_004_400, 36_004_400 + 15_504_400 + 5050},
		// 15 + 16.7 + 0.0044 + 10*0.0619; then 16.7044 + 0.000048*11
		{"70B", 10, 2, 32_323_400, 32_323_400 + 16_704_400 + 528},
		// Two chunks of 8,192 and 1,808 tokens: one more base and sequence cost.
		{"8B", 10_000, 1, 15_000_000 + 2*6_904_400 + 10_000*27_800, 15_000_000 + 2*6_904_400 + 10_000*27_800},
	} {
		r := mustNew(t, mustLookup(t, c.profile))
		s := &Seq{Prompt: c.prompt, Output: c.output}
		submit(t, r, time.Second, s)
		drain(r)
		if s.First-time.Second != c.first || s.Last-time.Second != c.last {
			t.Errorf("%s %d+%d: first %d last %d, want %d %d", c.profile, c.prompt, c.output,
				s.First-time.Second, s.Last-time.Second, c.first, c.last)
		}
		if st := r.Stats(); st.KVUsed != 0 || st.Prompt != int64(c.prompt) || st.Generated != int64(c.output) || st.Prefilled != int64(c.prompt) {
			t.Errorf("%s %d+%d: %+v", c.profile, c.prompt, c.output, st)
		}
	}
}

// TestSharedStep: two sequences in one step; the second finds the blocks that the first takes in it.
func TestSharedStep(t *testing.T) {
	r := mustNew(t, mustLookup(t, "8B"))
	a := &Seq{Hashes: hashes(1, 10), Prompt: 160, Output: 2}
	b := &Seq{Hashes: hashes(1, 10), Prompt: 165, Output: 2}
	submit(t, r, 0, a, b)
	drain(r)
	first := 15_000_000 + 6_900_000 + 2*4400 + 165*27_800*time.Nanosecond
	last := first + 6_900_000 + 2*4400 + 76*(161+166)
	if a.First != first || b.First != first || a.Last != last || b.Last != last || b.Cached != 160 {
		t.Errorf("a %d %d, b %d %d cached %d; want %d %d 160", a.First, a.Last, b.First, b.Last, b.Cached, first, last)
	}
}

// TestDecodesComeFirst: a long prompt is computed in chunks beside a decoding sequence, which gets a token
// in each of its steps.
func TestDecodesComeFirst(t *testing.T) {
	r := mustNew(t, mustLookup(t, "8B"))
	a := &Seq{Prompt: 100, Output: 5}
	submit(t, r, 0, a)
	first := 15_000_000 + 6_904_400 + 100*27_800*time.Nanosecond
	b := &Seq{Prompt: 16_382, Output: 1}
	submit(t, r, first-15*time.Millisecond, b) // queued at the very end of a's prefill: in time for the next step
	drain(r)
	chunks := 2 * (6_900_000 + 2*4400 + 8191*27_800*time.Nanosecond)
	if want := first + chunks + 76*(101+102); a.First != first || b.First != want {
		t.Errorf("first tokens at %d and %d, want %d and %d", a.First, b.First, first, want)
	}
	if want := first + chunks + 2*6_904_400 + 76*(101+102+103+104); a.Last != want {
		t.Errorf("a ended at %d, want %d", a.Last, want)
	}
}

// TestPreemptsTheLast: memory for one answer of two; the one admitted last is computed again.
func TestPreemptsTheLast(t *testing.T) {
	p := mustLookup(t, "8B")
	p.KVTokens = 6 * BlockTokens
	r := mustNew(t, p)
	a, b := &Seq{Prompt: 32, Output: 33}, &Seq{Prompt: 32, Output: 33}
	submit(t, r, 0, a, b)
	var resumed []Event
	for now, ok := r.Next(); ok; now, ok = r.Next() {
		for _, e := range r.Advance(now) {
			if e.Kind == Resumed {
				resumed = append(resumed, e)
			}
		}
	}
	st := r.Stats()
	if a.Preemptions != 0 || b.Preemptions != 1 || st.Preemptions != 1 {
		t.Errorf("preemptions %d %d %d, want 0 1 1", a.Preemptions, b.Preemptions, st.Preemptions)
	}
	// Both hold 3 blocks at 48 tokens: at the 17th answer token a needs a fourth. b waits until a is over.
	if len(resumed) != 1 || resumed[0].Seq != b || b.Generated != 33 {
		t.Fatalf("resumed %v, b at %d", resumed, b.Generated)
	}
	if want := resumed[0].At - a.Last; want != 6_904_400+49*27_800 {
		t.Errorf("computing b's 32+17 tokens again took %d", want)
	}
	if resumed[0].Took != resumed[0].At-b.First-16*6_908_800-76*16*2*(33+48)/2 {
		t.Errorf("b's tokens are %d apart, its 17th at %d", resumed[0].Took, resumed[0].At)
	}
	if st.Prefilled != 32+32+49 || st.Prompt != 64 || st.Generated != 66 || st.KVUsed != 0 {
		t.Errorf("%+v", st)
	}
}

func TestSlow(t *testing.T) {
	r := mustNew(t, mustLookup(t, "8B"))
	r.SetSlow(2)
	s := &Seq{Prompt: 1000, Output: 1}
	submit(t, r, 0, s)
	drain(r)
	if want := 15*time.Millisecond + 2*34_704_400; s.First != want {
		t.Errorf("first token at %d, want %d", s.First, want)
	}
}

func TestAbort(t *testing.T) {
	p := mustLookup(t, "8B")
	p.MaxSeqs = 1
	r := mustNew(t, p)
	seqs := []*Seq{{Prompt: 100, Output: 10}, {Prompt: 100, Output: 10}, {Prompt: 100, Output: 10}}
	submit(t, r, 0, seqs[:2]...)
	r.Advance(20 * time.Millisecond)
	submit(t, r, 20*time.Millisecond, seqs[2])
	if st := r.Stats(); st.Running != 1 || st.Waiting != 1 || st.Arriving != 1 || st.KVUsed != 7 {
		t.Fatalf("%+v", st)
	}
	for _, s := range seqs {
		if !r.Abort(s) {
			t.Error("abort of a live sequence reports false")
		}
		if r.Abort(s) {
			t.Error("second abort reports true")
		}
	}
	if st := r.Stats(); st.Running+st.Waiting+st.Arriving+st.KVUsed != 0 || st.Aborted != 3 {
		t.Fatalf("%+v", st)
	}
	drain(r)
	if st := r.Stats(); st.Generated != 0 || st.Finished != 0 {
		t.Errorf("aborted sequences gave tokens: %+v", st)
	}
}

func TestSubmitRefuses(t *testing.T) {
	p := mustLookup(t, "8B")
	p.KVTokens = 64
	r := mustNew(t, p)
	if err := r.Submit(0, &Seq{Prompt: 60, Output: 5}); !errors.Is(err, ErrTooLong) {
		t.Errorf("65 tokens into 64: %v", err)
	}
	fits := &Seq{Prompt: 60, Output: 4}
	submit(t, r, 0, fits)
	for _, s := range []*Seq{{Prompt: 0, Output: 1}, {Prompt: 1, Output: 0}, fits} {
		if err := r.Submit(0, s); err == nil || errors.Is(err, ErrTooLong) {
			t.Errorf("%d+%d: %v", s.Prompt, s.Output, err)
		}
	}
	drain(r)
	if fits.Generated != 4 {
		t.Errorf("a sequence that just fits gave %d of 4 tokens", fits.Generated)
	}
}

func TestProfiles(t *testing.T) {
	for _, p := range profiles {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	if _, err := Lookup("9B"); err == nil || err.Error() != `step: no profile "9B": use one of 8B, 32B, 70B` {
		t.Errorf("unknown profile: %v", err)
	}
	good := mustLookup(t, "8B")
	for name, spoil := range map[string]func(*Profile){
		"no memory":     func(p *Profile) { p.KVTokens = 15 },
		"no seat":       func(p *Profile) { p.MaxSeqs = 0 },
		"small batch":   func(p *Profile) { p.MaxBatch = 255 },
		"no time":       func(p *Profile) { p.Base = 0 },
		"negative time": func(p *Profile) { p.PerContext = -1 },
	} {
		p := good
		spoil(&p)
		if _, err := New(p); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestNoAllocationPerToken: a thousand decode steps of 64 sequences allocate nothing.
func TestNoAllocationPerToken(t *testing.T) {
	r := mustNew(t, mustLookup(t, "8B"))
	for range 64 {
		submit(t, r, 0, &Seq{Prompt: 10, Output: 3000})
	}
	r.Advance(200 * time.Millisecond)
	if n := testing.AllocsPerRun(1000, func() {
		next, _ := r.Next()
		r.Advance(next)
	}); n != 0 {
		t.Errorf("%v allocations per step", n)
	}
	if st := r.Stats(); st.Generated < 64*1000 {
		t.Errorf("only %d tokens: the steps did not decode", st.Generated)
	}
}

// TestLateCallerSeesTheSameTimes: model time does not depend on how often Advance is called.
func TestLateCallerSeesTheSameTimes(t *testing.T) {
	run := func(stride time.Duration) []time.Duration {
		r := mustNew(t, mustLookup(t, "8B"))
		var out []time.Duration
		for i := range 20 {
			submit(t, r, time.Duration(i), &Seq{Prompt: 500 + i, Output: 30})
		}
		for now := stride; now < 5*time.Second; now += stride {
			for _, e := range r.Advance(now) {
				if e.Kind == Finished {
					out = append(out, e.Seq.First, e.Seq.Last)
				}
			}
		}
		return out
	}
	fine, coarse := run(time.Millisecond), run(700*time.Millisecond)
	if len(fine) != 40 || !slices.Equal(fine, coarse) {
		t.Errorf("fine %v\ncoarse %v", fine, coarse)
	}
}
