package step

import "time"

// Stats is a replica's gauges and its counters since New. In a run without preemptions and aborts, once
// idle, Prompt = Queries = Prefilled + Hits.
type Stats struct {
	Arriving int // in the API server
	Waiting  int // in the queue, preempted ones included
	Running  int
	KVUsed   int // blocks held by running sequences
	KVBlocks int // all blocks

	Queries     int64 // prompt tokens of sequences admitted for the first time
	Hits        int64 // of those, found in the cache
	Prompt      int64 // prompt tokens of sequences that gave their first token
	Cached      int64 // of those, found in the cache
	Prefilled   int64 // tokens computed in prefill, again after a preemption included
	Reused      int64 // tokens found in the cache, again after a preemption included
	Decoded     int64 // tokens computed in decodes
	Evicted     int64 // tokens that preempted sequences gave up
	Ended       int64 // tokens that sequences held when they finished or were aborted
	Generated   int64 // answer tokens
	Preemptions int64
	Firsts      int64         // sequences that gave their first token
	FirstTime   time.Duration // of those, from Submit
	Gaps        int64         // tokens that came after one of the same answer
	GapTime     time.Duration // of those, from that one
	Finished    int64
	Answered    int64 // answer tokens of the finished
	Aborted     int64
	Steps       int64
	Admitted    int64         // sequences that were admitted for the first time
	QueueTime   time.Duration // of those, in the scheduler's queue
	Busy        time.Duration // time inside steps
}

// KVUsage is the share of KV memory held, 0 to 1.
func (s *Stats) KVUsage() float64 { return float64(s.KVUsed) / float64(s.KVBlocks) }

// Stats returns the state at the time of the last Advance, Submit or Abort.
func (r *Replica) Stats() Stats {
	s := r.stats
	s.Arriving, s.Waiting, s.Running = len(r.arriving), len(r.queue)+len(r.resumed), len(r.running)
	s.KVBlocks = r.cache.size()
	s.KVUsed = s.KVBlocks - r.cache.free
	return s
}
