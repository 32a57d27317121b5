package pool

import "time"

// weir owns health by not picking: Envoy's override_host follows a pick whatever it thinks of the host. Without
// this, a replica that fails at once is the cheapest of all, as nothing ever waits there.
//
//	failure   an answer of 502, 503 or 504, its own or Envoy's for it; a retry that another replica had to serve;
//	          a token counter that stands still for longer than its longest prompt explains, or no sign of work
//	          for as long when a client gives up that waited as long itself
//	success   a token counter that moves; an answer to the end
//
// Two failures with no success between, or one refused connection, take a replica out for a second, twice as
// long each time it fails again. Then one request at a time tries it, until one succeeds. Where a connection was refused
// nobody tries until its metrics are read again, or for 16 s: a scrape finds out without a client. Requests that are
// there from before do not stand in the way: a client that reads slowly keeps one open while no counter moves.

const (
	failuresDown = 2
	minDown      = time.Second
	maxDown      = 16 * time.Second
)

// health is what a replica's answers say of it.
type health struct {
	failures int       // since the last success
	until    time.Time // out until then, if failing
	trial    *Lease    // the request that tries it, while failing; nil: none
	tried    time.Time // when it was charged
	refused  bool      // nobody listened there
}

func (h *health) failing() bool { return h.failures >= failuresDown }

// try notes that l was charged: the trial of a replica that fails, if it is the only one.
func (h *health) try(now time.Time, l *Lease) {
	if h.failing() && h.trial == nil {
		h.trial, h.tried = l, now
	}
}

// end notes that l was released.
func (h *health) end(l *Lease) {
	if h.trial == l {
		h.trial = nil
	}
}

// Fail notes a failure. Those of requests that were on their way when the replica was taken out add nothing.
func (r *Replica) Fail(now time.Time) {
	h := &r.health
	if now.Before(h.until) {
		return
	}
	h.failures++
	if n := h.failures - failuresDown; n >= 0 {
		h.until = now.Add(min(minDown<<min(n, 10), maxDown))
	}
}

// Refuse notes a connection that the replica's host refused: nobody listens there.
func (r *Replica) Refuse(now time.Time) {
	r.takeOut(now)
	r.health.refused = true
	if until := now.Add(maxDown); until.After(r.health.until) {
		r.health.until = until
	}
}

// takeOut is a failure that needs no second one.
func (r *Replica) takeOut(now time.Time) {
	r.health.failures = max(r.health.failures, failuresDown-1)
	r.Fail(now)
}

// listens notes that somebody listens there: a request may try it.
func (h *health) listens(now time.Time) {
	if h.refused {
		h.refused, h.until = false, now
	}
}

// down reports whether the replica is out, or tried by one request already.
func (r *Replica) down(now time.Time) bool {
	h := &r.health
	return h.failing() && (now.Before(h.until) || h.trial != nil)
}

// explained is how many times its own prefill time a prompt may take, beyond Patience, before its silence counts
// against the replica, as the replica may be slower than was learned so far and has work beside it: one three times as slow
// was taken for hung by a factor of two.
const explained = 4

// Explains is the silence that a prompt with so many uncached tokens explains: no counter moves until it is done.
func (r *Replica) Explains(uncached float64) time.Duration {
	return max(time.Duration(explained*uncached*r.prefill*float64(time.Second)), Patience)
}

// Stalled reports whether the replica shows no progress for longer than the longest prompt explains that came since
// it last did, or was still to be computed then. One that fails already stalls again only on its trial.
func (r *Replica) Stalled(now time.Time) bool {
	h := &r.health
	if r.leases == 0 || h.failing() && h.trial == nil {
		return false
	}
	since := r.patience
	if begun := h.tried.Add(Patience); h.trial != nil && begun.After(since) {
		since = begun
	}
	return now.After(since.Add(r.Explains(r.longest)))
}

// Counted reports whether the replica's token counter is known and fresh, so that it alone tells of progress.
func (r *Replica) Counted(now time.Time) bool {
	return !r.counted.IsZero() && now.Sub(r.counted) < Stale
}
