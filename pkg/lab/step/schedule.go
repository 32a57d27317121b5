package step

import (
	"slices"
	"time"
)

// plan adds up what the step under construction holds.
type plan struct {
	budget  int // tokens still free in the step
	context int // context tokens of decoding sequences
	prefill int // prompt tokens
}

// startStep schedules a step at t, or leaves the replica idle when nothing waits. The first running
// sequence always gets its blocks, since all others can be preempted for it, so a step is never empty
// while something runs.
func (r *Replica) startStep(t time.Duration) {
	pl := plan{budget: r.profile.MaxBatch}
	before := r.stats.Preemptions
	r.scheduleRunning(&pl)
	if r.stats.Preemptions == before { // else the memory just won would go to newcomers
		r.admit(t, &pl)
	}
	r.stepping = len(r.running) > 0
	if !r.stepping {
		return
	}
	r.tokens = r.profile.MaxBatch - pl.budget
	took := r.profile.StepTime(len(r.running), pl.context, pl.prefill)
	if r.slow != 1 {
		took = time.Duration(float64(took) * r.slow)
	}
	r.start, r.end = t, t+took
	r.stats.Prefilled += int64(pl.prefill)
}

// scheduleRunning plans the running sequences in order of admission. Those that decode come first by
// themselves: a prompt that does not fit its step ends the step, so at most the last sequence is still
// prefilling.
func (r *Replica) scheduleRunning(pl *plan) {
	for i := 0; i < len(r.running); i++ {
		s := r.running[i]
		if s.decoding && s.computed%BlockTokens != 0 && (s.computed+1)%BlockTokens != 0 {
			s.planned = 1 // neither takes a block nor fills one: 14 of 16 decodes
			pl.budget--
			pl.context += s.Prompt + s.Generated
			continue
		}
		n := min(s.total()-s.computed, pl.budget)
		if need := blocksFor(s.computed+n) - len(s.blocks); need > 0 && !r.makeRoom(need, s) {
			return
		}
		r.schedule(s, n, pl)
	}
}

// makeRoom preempts from the end of the running sequences until need blocks are free. It reports false
// when s itself had to go.
func (r *Replica) makeRoom(need int, s *Seq) bool {
	for need > r.cache.free {
		last := len(r.running) - 1
		victim := r.running[last]
		r.running = r.running[:last]
		r.cache.release(victim.blocks)
		r.stats.Evicted += int64(victim.computed)
		victim.blocks, victim.computed, victim.hashed = victim.blocks[:0], 0, 0
		if victim.decoding {
			victim.Last, victim.decoding = r.end, false // a decoding sequence gave a token in the last step
		}
		victim.state = waiting
		victim.Preemptions++
		r.stats.Preemptions++
		r.resumed = append(r.resumed, victim)
		if victim == s {
			return false
		}
	}
	return true
}

// admit starts waiting sequences, the first in line only: one that does not fit keeps all behind it.
func (r *Replica) admit(t time.Duration, pl *plan) {
	for pl.budget > 0 && len(r.running) < r.profile.MaxSeqs {
		s := r.head()
		if s == nil {
			return
		}
		if s == r.blocked && r.stillBlocked(s, pl.budget) {
			return
		}
		s.blocks = slices.Grow(s.blocks, blocksFor(s.Prompt+s.Output)-len(s.blocks)) // once: take never grows it
		var idle int
		s.blocks, idle = r.cache.match(s.reusable(), s.blocks)
		cached := len(s.blocks) * BlockTokens
		n := min(s.total()-cached, pl.budget)
		if blocksFor(cached+n)-len(s.blocks)+idle > r.cache.free {
			r.blocked, r.named = s, r.cache.named
			return
		}
		r.pop()
		r.cache.hold(s.blocks)
		s.state, s.computed, s.hashed = running, cached, len(s.blocks)
		r.stats.Reused += int64(cached)
		if s.Preemptions == 0 {
			s.Admitted, s.Cached = t, cached
			r.stats.Queries += int64(s.Prompt)
			r.stats.Hits += int64(cached)
			r.stats.Admitted++
			r.stats.QueueTime += t - s.Queued
		}
		r.running = append(r.running, s)
		r.schedule(s, n, pl)
	}
}

// stillBlocked reports whether the head of the queue, which did not fit at the last look, cannot fit now, without another:
// each block that was named since shortens what it needs by one at most, and idle ones only add to that. Behind a full
// cache this is the answer nearly always, where a look goes through the whole prompt.
func (r *Replica) stillBlocked(s *Seq, budget int) bool {
	cached := len(s.blocks) * BlockTokens
	need := blocksFor(cached+min(s.total()-cached, budget)) - len(s.blocks)
	return need-(r.cache.named-r.named) > r.cache.free
}

func (r *Replica) head() *Seq {
	if n := len(r.resumed); n > 0 {
		return r.resumed[n-1]
	}
	if len(r.queue) > 0 {
		return r.queue[0]
	}
	return nil
}

func (r *Replica) pop() {
	r.blocked = nil
	if n := len(r.resumed); n > 0 {
		r.resumed = r.resumed[:n-1]
		return
	}
	r.queue[0] = nil
	r.queue = r.queue[1:]
}

// schedule puts n tokens of s into the step and takes the blocks for them, which are free. Full blocks get
// their hash now, not when the step ends: as in vLLM, a sequence later in the same step finds them.
func (r *Replica) schedule(s *Seq, n int, pl *plan) {
	s.planned = n
	pl.budget -= n
	if s.decoding {
		pl.context += s.total()
	} else {
		pl.prefill += n
	}
	upto := s.computed + n
	if need := blocksFor(upto) - len(s.blocks); need > 0 {
		s.blocks = r.cache.take(need, s.blocks)
	}
	for full := upto / BlockTokens; s.hashed < full; s.hashed++ {
		if s.hashed < len(s.Hashes) {
			r.cache.name(s.blocks[s.hashed], s.Hashes[s.hashed])
		}
	}
}

// finishStep gives every sequence whose known tokens are all computed its next token.
func (r *Replica) finishStep() {
	t, took := r.end, r.end-r.start
	r.events = append(r.events, Event{Kind: Stepped, At: t, Took: took, Tokens: r.tokens})
	stepped := len(r.events) - 1
	decodes := 0
	keep := r.running[:0]
	for _, s := range r.running {
		s.computed += s.planned
		if s.decoding {
			decodes++
			s.Generated++
		} else if s.computed == s.total() {
			r.prefilled(s, t)
		}
		if s.Generated < s.Output {
			keep = append(keep, s)
			continue
		}
		s.Last, s.state = t, unknown
		r.cache.release(s.blocks)
		s.blocks = s.blocks[:0]
		r.stats.Finished++
		r.stats.Answered += int64(s.Output)
		r.stats.Ended += int64(s.computed)
		r.events = append(r.events, Event{Kind: Finished, At: t, Seq: s})
	}
	clear(r.running[len(keep):])
	r.running = keep
	r.events[stepped].Decodes = decodes
	r.stats.Generated += int64(decodes)
	r.stats.Gaps += int64(decodes)
	r.stats.GapTime += time.Duration(decodes) * took
	r.stats.Decoded += int64(decodes)
	r.stats.Steps++
	r.stats.Busy += took
}

// prefilled turns a sequence whose prompt is computed into a decoding one, with the token that this gives.
func (r *Replica) prefilled(s *Seq, t time.Duration) {
	s.decoding = true
	s.Generated++
	r.stats.Generated++
	if s.Generated > 1 {
		r.stats.Gaps++
		r.stats.GapTime += t - s.Last
		r.events = append(r.events, Event{Kind: Resumed, At: t, Took: t - s.Last, Seq: s})
		return
	}
	s.First = t
	r.stats.Firsts++
	r.stats.FirstTime += t - s.Submitted
	r.stats.Prompt += int64(s.Prompt)
	r.stats.Cached += int64(s.Cached)
	r.events = append(r.events, Event{Kind: First, At: t, Seq: s})
}
