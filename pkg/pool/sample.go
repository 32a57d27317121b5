package pool

import (
	"math"
	"time"
)

// Sample is what one scrape of a replica's metrics told. A field that was missing or no finite number has
// its Has flag unset: unknown, never zero.
type Sample struct {
	At         time.Time // when the answer arrived
	Running    float64
	HasRunning bool
	Waiting    float64
	HasWaiting bool
	KV         float64 // share of the KV cache in use, 0 to 1
	HasKV      bool
	KVTokens   float64 // that the KV cache holds, above 0
	HasSize    bool
	Tokens     float64 // prompt and generated tokens so far: a counter that moves while the replica works
	HasTokens  bool
	Prompt     float64 // prompt tokens so far, cached ones included: a counter, which may move at the end of a request only
	HasPrompt  bool

	Answers      float64 // requests finished so far, and the tokens of their answers: counters
	AnswerTokens float64
	HasAnswers   bool

	TTFT       Summary // seconds from a request's arrival at the replica to its first token
	InterToken Summary // seconds between two tokens of an answer
	Queue      Summary // seconds in the replica's own queue
	Hits       Summary // per prompt token, 1 for one that its prefix cache held and 0 for another

	Computed    float64 // uncached prompt tokens so far
	HasComputed bool

	Preemptions    float64 // so far
	HasPreemptions bool
	Started        float64 // when the process started, in Unix seconds by the replica's clock
	HasStarted     bool
}

// Summary is how many values a replica has counted so far, and their sum.
type Summary struct {
	Count, Sum float64
	Has        bool
}

// since is what was counted after last: unknown if either is, if nothing was, or if a counter went back.
func (m Summary) since(last Summary) (d Summary) {
	d.Count, d.Sum = m.Count-last.Count, m.Sum-last.Sum
	d.Has = m.Has && last.Has && d.Count > 0 && d.Sum >= 0
	if !d.Has {
		return Summary{}
	}
	return d
}

// counts is what a replica counted between two scrapes, by the fields of Sample.
type counts struct {
	answers, ttft, interToken, queue, hits Summary
	computed                               float64 // uncached prompt tokens
	hasComputed                            bool
	preemptions                            float64
	hasPreemptions                         bool
}

func (s *Sample) answers() Summary { return Summary{s.Answers, s.AnswerTokens, s.HasAnswers} }

// since is what was counted after last, which is not of an earlier process.
func (s *Sample) since(last *Sample) (c counts) {
	c = counts{
		answers: s.answers().since(last.answers()), ttft: s.TTFT.since(last.TTFT), interToken: s.InterToken.since(last.InterToken),
		queue: s.Queue.since(last.Queue), hits: s.Hits.since(last.Hits),
	}
	if n := s.Computed - last.Computed; s.HasComputed && last.HasComputed && n >= 0 {
		c.computed, c.hasComputed = n, true
	}
	if n := s.Preemptions - last.Preemptions; s.HasPreemptions && last.HasPreemptions && n >= 0 {
		c.preemptions, c.hasPreemptions = n, true
	}
	return c
}

// keep takes over the counters of last that s lacks: a gap in one hides neither a restart nor a stall, and what was
// counted meanwhile is told at its end.
func (s *Sample) keep(last *Sample) {
	if !s.HasTokens {
		s.Tokens, s.HasTokens = last.Tokens, last.HasTokens
	}
	if !s.HasPrompt {
		s.Prompt, s.HasPrompt = last.Prompt, last.HasPrompt
	}
	if !s.HasAnswers {
		s.Answers, s.AnswerTokens, s.HasAnswers = last.Answers, last.AnswerTokens, last.HasAnswers
	}
	if !s.HasComputed {
		s.Computed, s.HasComputed = last.Computed, last.HasComputed
	}
	if !s.HasPreemptions {
		s.Preemptions, s.HasPreemptions = last.Preemptions, last.HasPreemptions
	}
	if !s.HasStarted {
		s.Started, s.HasStarted = last.Started, last.HasStarted
	}
	for _, c := range []struct{ now, last *Summary }{{&s.TTFT, &last.TTFT}, {&s.InterToken, &last.InterToken}, {&s.Queue, &last.Queue}, {&s.Hits, &last.Hits}} {
		if !c.now.Has {
			*c.now = *c.last
		}
	}
}

// sameStart is how far apart the start of one process may be told, in seconds: it is counted from the boot of the host,
// which Linux tells in whole seconds and moves by one when the clock is set. No model is loaded in two.
const sameStart = 2

// restarted reports whether another process told s than last: one that started at another time, or has counted less.
func (s *Sample) restarted(last *Sample) bool {
	return s.HasStarted && last.HasStarted && math.Abs(s.Started-last.Started) >= sameStart ||
		s.HasTokens && last.HasTokens && s.Tokens < last.Tokens ||
		s.HasAnswers && last.HasAnswers && s.Answers < last.Answers
}

// Stale is the age at which a gauge stops being believed: three scrapes of one second.
const Stale = 3 * time.Second

// mostRequests is more than any replica runs or lets wait.
const mostRequests = 1 << 20

// doubt takes a gauge for unknown that no replica can have: what it says of others is remembered for minutes.
func (s *Sample) doubt() {
	s.HasRunning = s.HasRunning && s.Running <= mostRequests
	s.HasWaiting = s.HasWaiting && s.Waiting <= mostRequests
}

// Observe takes a scrape. Gauges never overwrite the load that weir counts itself.
func (r *Replica) Observe(now time.Time, s Sample) {
	r.advance(now)
	r.health.listens(now)
	if s.HasTokens {
		r.counted = s.At
		if !r.known {
			r.known = true
			r.cold.Store(s.Tokens <= r.total)
		}
	}
	last := r.sample
	if s.restarted(&last) {
		r.restart(now)
		last = Sample{}
	}
	switch {
	case !s.HasTokens:
	case !last.HasTokens || s.Tokens > last.Tokens:
		r.progress(now)
	case r.Stalled(now):
		r.takeOut(now)
	}
	if s.HasSize {
		r.resize(s.KVTokens)
	}
	if s.HasKV {
		r.fresh, r.promised = 0, 0
		r.gauges++
	}
	r.meet(s)
	r.lately = s.since(&last)
	r.study(&s, s.At.Sub(last.At).Seconds())
	s.keep(&last)
	r.sample, r.sampled = s, true
	r.pace(now)
}

// restart notes that another process serves there now: its cache is empty. What weir sent stays charged until it ends.
func (r *Replica) restart(now time.Time) {
	r.Index.Reset()
	r.known = true
	r.cold.Store(true)
	r.restarts++
	r.work = work{}
	r.fit.Forget()
	r.progress(now)
}

// Scrape is the last scrape of a replica, and what it counted since the one before: means, null where it counted nothing.
// A gauge that was missing is null.
type Scrape struct {
	AgeSeconds  float64    `json:"age_seconds"`
	Stale       bool       `json:"stale"`
	Running     *float64   `json:"running"`
	Waiting     *float64   `json:"waiting"`
	KV          *float64   `json:"kv"`
	Started     *time.Time `json:"started"`
	TTFT        *float64   `json:"ttft_seconds"`
	InterToken  *float64   `json:"inter_token_seconds"`
	Queue       *float64   `json:"queue_seconds"`
	HitShare    *float64   `json:"hit_share"` // of prompt tokens
	Preemptions *float64   `json:"preemptions"`
}

func (r *Replica) scrape(now time.Time) *Scrape {
	age, s, c := now.Sub(r.sample.At), &r.sample, &r.lately
	told := &Scrape{
		AgeSeconds: age.Seconds(), Stale: age >= Stale,
		Running: known(s.Running, s.HasRunning), Waiting: known(s.Waiting, s.HasWaiting), KV: known(s.KV, s.HasKV),
		TTFT: c.ttft.mean(), InterToken: c.interToken.mean(), Queue: c.queue.mean(), HitShare: c.hits.mean(),
		Preemptions: known(c.preemptions, c.hasPreemptions),
	}
	if s.HasStarted {
		at := time.UnixMilli(int64(s.Started * 1000)).UTC()
		told.Started = &at
	}
	return told
}

func (m Summary) mean() *float64 { return known(m.Sum/m.Count, m.Has) }

func known(v float64, has bool) *float64 {
	if !has {
		return nil
	}
	return &v
}
