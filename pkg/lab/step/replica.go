package step

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrTooLong is a sequence whose prompt and answer do not fit the KV memory, alone: it could never end.
var ErrTooLong = errors.New("step: prompt and answer exceed the KV memory")

// Kind says what an Event is.
type Kind uint8

const (
	Stepped  Kind = iota // a step ended
	First                // a sequence gave its first token
	Resumed              // a preempted sequence gave a token again
	Finished             // a sequence gave its last token and its blocks are free
)

// Event is something that happened during Advance. Single decode tokens have none: Seq.Generated tells how
// far a sequence is, and Stepped how many sequences gave a token after how long.
type Event struct {
	Kind    Kind
	At      time.Duration
	Took    time.Duration // Stepped: the step's time. Resumed: since the sequence's previous token
	Seq     *Seq          // nil for Stepped
	Decodes int           // Stepped: sequences that gave a token Took after their previous one
	Tokens  int           // Stepped: prompt and decode tokens computed
}

// Replica is one simulated vLLM engine. Its methods take model time, which must not go back, and are for
// one goroutine. No memory is allocated per token or per step.
type Replica struct {
	profile Profile
	slow    float64
	cache   *cache

	arriving []*Seq // in the API server, by arrival
	queue    []*Seq // first come, first served
	resumed  []*Seq // preempted, the top first; all before queue
	running  []*Seq // by admission
	blocked  *Seq   // the head of the queue at the last look, if it did not fit
	named    int    // cache.named then

	stepping   bool
	start, end time.Duration // of the running step
	tokens     int           // computed by the running step

	events []Event
	stats  Stats
}

// New makes an idle replica with an empty cache.
func New(p Profile) (*Replica, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &Replica{profile: p, slow: 1, cache: newCache(p.KVTokens / BlockTokens)}, nil
}

// SetSlow makes the steps that start from now on take factor times as long; at most 0 counts as 1.
func (r *Replica) SetSlow(factor float64) {
	if !(factor > 0) {
		factor = 1
	}
	r.slow = factor
}

// Profile is what the replica was made of.
func (r *Replica) Profile() Profile { return r.profile }

// Slow is the factor of SetSlow, 1 until then.
func (r *Replica) Slow() float64 { return r.slow }

// Submit hands s to the API server; the scheduler sees it Profile.API later. It returns ErrTooLong for a
// sequence that can never fit, and an error for one without tokens or already submitted.
func (r *Replica) Submit(now time.Duration, s *Seq) error {
	if s.Prompt < 1 || s.Output < 1 || s.state != unknown {
		return fmt.Errorf("step: submit of %d prompt and %d answer tokens in state %d", s.Prompt, s.Output, s.state)
	}
	if blocksFor(s.Prompt+s.Output) > r.cache.size() {
		return ErrTooLong
	}
	s.Generated, s.Cached, s.Preemptions = 0, 0, 0
	s.Submitted, s.Queued = now, now+r.profile.API
	s.computed, s.hashed, s.decoding, s.blocks = 0, 0, false, s.blocks[:0]
	s.state = arriving
	r.arriving = append(r.arriving, s)
	return nil
}

// Next returns when something happens next without another call: a step ends or an idle replica starts
// one. ok is false when the replica has nothing to do.
func (r *Replica) Next() (t time.Duration, ok bool) {
	switch {
	case len(r.arriving) > 0 && (!r.stepping || r.arriving[0].Queued <= r.end):
		return r.arriving[0].Queued, true
	case r.stepping:
		return r.end, true
	default:
		return 0, false
	}
}

// Advance moves the replica to now and returns what happened on the way, in order. Steps follow one another
// at the times of the model, however late the caller is. The slice is valid until the next call.
func (r *Replica) Advance(now time.Duration) []Event {
	r.events = r.events[:0]
	for t, ok := r.Next(); ok && t <= now; t, ok = r.Next() {
		if len(r.arriving) > 0 && r.arriving[0].Queued == t {
			s := r.arriving[0]
			r.arriving[0] = nil
			r.arriving = r.arriving[1:]
			s.state = waiting
			r.queue = append(r.queue, s)
			if r.stepping || len(r.arriving) > 0 && r.arriving[0].Queued == t {
				continue
			}
		} else {
			r.finishStep()
		}
		r.startStep(t)
	}
	return r.events
}

// Abort takes a sequence out at once, wherever it stands, and frees its blocks. The running step keeps its
// length. It reports whether the sequence was alive.
func (r *Replica) Abort(s *Seq) bool {
	drop := func(list []*Seq) []*Seq {
		if i := slices.Index(list, s); i >= 0 {
			return slices.Delete(list, i, i+1)
		}
		return list
	}
	switch s.state {
	case arriving:
		r.arriving = drop(r.arriving)
	case waiting:
		r.queue, r.resumed = drop(r.queue), drop(r.resumed)
	case running:
		r.running = drop(r.running)
		r.cache.release(s.blocks)
		r.stats.Ended += int64(s.taken())
	default:
		return false
	}
	s.state, s.blocks = unknown, s.blocks[:0]
	if r.blocked == s {
		r.blocked = nil
	}
	r.stats.Aborted++
	return true
}

func blocksFor(tokens int) int { return (tokens + BlockTokens - 1) / BlockTokens }
