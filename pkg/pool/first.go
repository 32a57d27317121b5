package pool

import "math"

// The time from a request's charge to its first token is predicted as
//
//	V*P + u*P + D + rest
//
// The rest is what the formula leaves out: the replica's API server, and the step that it is in when the request comes. It is
// learned as the mean over requests, from the replicas' counters. It is the same on all replicas, so that no cost has it.

// restMemory is the requests over which the rest is learned.
const restMemory = 500.0

// rest is the moving sums that it is learned from.
type rest struct{ requests, seconds float64 }

// add takes in the first tokens between two scrapes, and by how many seconds they were above the formula.
func (r *rest) add(requests, seconds float64) {
	keep := math.Pow(1-1/restMemory, max(requests, 0))
	r.requests, r.seconds = keep*r.requests+requests, keep*r.seconds+seconds
}

// mean is the rest in seconds: 0 until enough requests were counted.
func (r *rest) mean() float64 {
	if r.requests < matchFirst {
		return 0
	}
	return max(r.seconds/r.requests, 0)
}

// firstToken is the formula for a request that comes at the last event, in seconds.
func (r *Replica) firstToken(q Load) float64 {
	return (r.theirs+r.backlog+q.Uncached)*r.prefill + r.decode
}

// First is the time from its charge to its first token that was predicted then, in seconds.
func (l *Lease) First() float64 { return l.first }
