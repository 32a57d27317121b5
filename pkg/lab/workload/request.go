package workload

import "time"

// Request is one request of a workload, in model time since the workload's start. Requests may share the
// memory of their Blocks, which are read only.
type Request struct {
	At     time.Duration // intended arrival
	Blocks []uint64      // chained hashes of the prompt's full 16-token blocks (step.BlockTokens); then those of the answer, if a later turn extends it
	Prompt int           // tokens
	Output int           // tokens that the model answers with
	Class  string        // "interactive" or "bulk"; empty: the first class
	Flow   string        // tenant; empty: none

	// Then returns the session's next turn, given when this one ended; nil: none. It is called once at most.
	Then func(end time.Duration) *Request
}

// Source yields requests in the order of At; ok is false at the end.
type Source interface {
	Next() (r *Request, ok bool)
}
