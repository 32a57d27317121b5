package step

import "time"

type state uint8

const (
	unknown  state = iota // never submitted, or over
	arriving              // in the API server
	waiting               // queued, for the first time or after a preemption
	running               // holds KV blocks
)

// Seq is one prompt and its answer. The caller sets the first three fields before Submit and leaves them
// alone until the sequence is finished or aborted; the model sets the rest, which the caller may read
// between calls. Times are model time.
type Seq struct {
	// Hashes names the full blocks of 16 tokens, first block first, each together with all before it. Those
	// past the prompt name blocks of the answer, so that a later turn can find them; a block without a
	// hash, or with hash 0, is never found again.
	Hashes []uint64
	Prompt int // prompt tokens, at least 1
	Output int // answer tokens, at least 1

	Generated   int // answer tokens so far
	Cached      int // prompt tokens found in the cache when first admitted
	Preemptions int

	Submitted time.Duration // Submit
	Queued    time.Duration // reached the scheduler's queue
	Admitted  time.Duration // first scheduled
	First     time.Duration // first token
	Last      time.Duration // last token before a preemption, or of the answer

	state    state
	decoding bool    // its prompt is computed: one token a step
	computed int     // tokens whose KV is held
	planned  int     // tokens in the running step
	hashed   int     // blocks looked at for hashing
	blocks   []int32 // running: blocks held; waiting: those found by the last look, not held
}

// total is the tokens known so far: what a step may compute.
func (s *Seq) total() int { return s.Prompt + s.Generated }

// reusable is the hashes that a look into the cache may use: full blocks, and never the last token.
func (s *Seq) reusable() []uint64 {
	return s.Hashes[:min(len(s.Hashes), (s.total()-1)/BlockTokens)]
}

// taken is the tokens of a running sequence that have been found or computed, those that the running step was
// charged for as prefill included.
func (s *Seq) taken() int {
	if s.decoding {
		return s.computed
	}
	return s.computed + s.planned
}

// Left returns how many tokens a running sequence has still to compute before its next one; ok is false for one
// that does not run.
func (s *Seq) Left() (tokens int, ok bool) {
	if s.state != running {
		return 0, false
	}
	return s.total() - s.computed, true
}
