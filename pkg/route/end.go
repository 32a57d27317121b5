package route

import (
	"time"

	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/prefix"
)

// Done ends a request: it takes it out of the gate or its load off the replica. The first call counts, later
// ones do nothing. end tells how: CutHeld or Failed of one that is still held, which is LeftHeld otherwise; a Decision
// that was refused keeps its own Outcome. It reports whether others are held, so that Release is due.
func (r *Router) Done(now time.Time, d *Decision, end Outcome) (held bool) {
	held, computed := r.finish(now, d, end)
	d.unpin(true, computed)
	return held
}

func (r *Router) finish(now time.Time, d *Decision, end Outcome) (held bool, computed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.ended {
		return false, 0
	}
	d.ended = true
	switch {
	case r.gate.Leave(now, &d.ticket):
		d.Outcome, d.Wait = LeftHeld, now.Sub(d.Arrived)
		if end == Failed || end == CutHeld {
			d.Outcome = end
		}
	case d.State == Picked:
		if end == CutHeld { // and admitted in the same instant
			end = Unanswered
		}
		d.Outcome = end
		at := d.lease.Replica
		computed = d.computed(now, end)
		r.pool.End(now, &d.lease, d.kind(), computed == prefix.All, d.Status >= 300)
		failed := d.unavailable() || end == Unanswered && at.Stalled(now) && d.overdue(now)
		d.lease.Release(now, d.worked(now, end))
		if failed {
			at.Fail(now)
		}
	}
	return r.gate.Len() > 0, computed
}

// Dismiss refuses a Decision that is still held, as weir stops, and reports whether it was: else its wait is over, and
// Ready closed or about to be.
func (r *Router) Dismiss(now time.Time, d *Decision) (refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if refused = r.gate.Leave(now, &d.ticket); refused {
		r.refuse(now, d, Stopped)
	}
	return refused
}

// overdue reports whether a request waited for its answer for longer than its own prompt explains: a client that leaves
// at once says nothing of the replica.
func (d *Decision) overdue(now time.Time) bool {
	return now.Sub(d.Arrived.Add(d.Wait)) > pool.Patience+d.lease.Replica.Explains(d.lease.Load.Uncached)
}

// answered reports whether the replica answered the request, and not with an error.
func (d *Decision) answered(end Outcome) bool { return end == Answered && d.Status < 300 }

// worked reports whether the request's end is a sign that its replica works. The headers of an event stream come
// before any work, and its end may be the client's: they are a sign only while no token counter tells better. What is
// answered without the engine is none.
func (d *Decision) worked(now time.Time, end Outcome) bool {
	return d.answered(end) && !d.query.Aside && !(d.Events && d.lease.Replica.Counted(now))
}

// computed is how many of the prompt's blocks the replica has computed as the request ends: all of an answer that came with
// its headers. An event stream may have been left by its client at any time after them, and one that is left before any
// headers may be computed already: of these the lease tells, in whole blocks. Where that is a little, the replica has a
// little more, as it works in chunks of some thousand tokens: a client that asks again recomputes a part of one. More than
// is there would send the next one to a replica that must compute it all.
func (d *Decision) computed(now time.Time, end Outcome) (blocks int) {
	if d.worked(now, end) {
		return prefix.All
	}
	if d.Status >= 300 || end == Failed {
		return 0
	}
	tokens := d.lease.Computed(now)
	if tokens >= d.lease.Load.Prompt && d.answered(end) {
		return prefix.All
	}
	return int(tokens / d.block)
}

// unavailable reports whether the answer says that nothing is there to answer: the replica's own word, or
// Envoy's for one that it could not reach. What its breaker refused says nothing of the replica.
func (d *Decision) unavailable() bool {
	return !d.Crowded && (d.Status == 502 || d.Status == 503 || d.Status == 504)
}

// Serve tells the router which replica answered, and sets the Decision's Served. The lease moves there when it
// was not the one picked. When Envoy's retry took the second, the first has failed.
func (r *Router) Serve(now time.Time, d *Decision, endpoint string) {
	d.Served = d.served(endpoint)
	at := r.pool.Replica(endpoint)
	if d.Served == First || d.Served == Unknown || at == nil {
		return
	}
	load := d.query.LoadOn(at.Slot)
	if r.move(now, d, at, load) {
		d.unpin(false, 0)
		d.pin(at, load)
	}
}

// move reports whether the lease had to move: not when the request has ended, nor when it is there already.
func (r *Router) move(now time.Time, d *Decision, at *pool.Replica, load pool.Load) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.ended || d.lease.Replica == at {
		return false
	}
	if d.Served == Second {
		d.lease.Replica.Fail(now)
	}
	r.pool.End(now, &d.lease, d.kind(), false, true)
	d.lease.Release(now, false)
	r.pool.Charge(now, &d.lease, at, load)
	return true
}

// Observe takes a scrape of the replica at endpoint.
func (r *Router) Observe(now time.Time, endpoint string, s pool.Sample) {
	if at := r.pool.Replica(endpoint); at != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.pool.Observe(now, at, s)
		if r.gate.Len() > 0 {
			at.Guard(now)
		}
	}
}

// Refuse notes that the host at endpoint refused a connection.
func (r *Router) Refuse(now time.Time, endpoint string) {
	if at := r.pool.Replica(endpoint); at != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		at.Refuse(now)
	}
}
