package pool

import "time"

// Load is what one request puts on a replica, in tokens.
type Load struct {
	Prompt   float64 // of the whole prompt
	Uncached float64 // u: of the prompt that the replica must compute, at least one
	Output   float64 // out: of the answer, expected
	Bulk     bool    // nobody waits for it

	beside float64 // what it adds to V beside its uncached tokens (package comment)
}

// Lease is the load of one request on one replica, until it is released. It belongs to the Replica, not to
// its endpoint: a late Release never touches a new replica at an old address. A live Lease must not be copied.
type Lease struct {
	Replica *Replica
	Load    Load

	live         bool
	left         float64 // of Load.Uncached and what is beside it: has not drained
	older, newer *Lease  // neighbours in the replica's backlog while left > 0
	gauges       int     // Replica.gauges when it was charged
}

// charge adds the load.
func (r *Replica) charge(now time.Time, l *Lease, q Load) {
	r.advance(now)
	if r.leases == 0 {
		r.begin(now)
	}
	r.longest = max(r.longest, q.Uncached)
	r.leases++
	r.context += q.Prompt + q.Output/2
	r.output += q.Output
	r.fresh += q.Uncached
	r.promised += q.Output
	r.total += q.Prompt + q.Output
	r.most = max(r.most, r.leases)
	r.each = r.context / float64(r.leases)
	*l = Lease{Replica: r, Load: q, live: true, gauges: r.gauges}
	r.push(l)
	r.health.try(now, l)
	r.pace(now)
}

// Release takes the lease's load off its replica, with what of its prompt had not drained. answered says that the
// replica answered, a sign that it works: clients that give up on a hung one are none. The first call counts;
// later ones do nothing.
func (l *Lease) Release(now time.Time, answered bool) {
	if !l.live {
		return
	}
	l.live = false
	r := l.Replica
	r.advance(now)
	if l.left > 0 {
		r.backlog -= l.left
		r.remove(l)
	}
	r.health.end(l)
	r.leases--
	r.context -= l.Load.Prompt + l.Load.Output/2
	r.output -= l.Load.Output
	if l.gauges == r.gauges { // else the gauge counted it, and the next one will not
		r.fresh -= l.Load.Uncached
		r.promised -= l.Load.Output
	}
	if r.leases == 0 { // sums of floats: an idle replica is exactly idle
		r.context, r.output, r.fresh, r.promised = 0, 0, 0, 0
	}
	if answered {
		r.progress(now)
	}
	r.pace(now)
}

// push makes l the newest of the backlog.
func (r *Replica) push(l *Lease) {
	if l.left = l.Load.Uncached + l.Load.beside; l.left <= 0 {
		return
	}
	r.backlog += l.left
	if l.Load.Bulk {
		r.bulk++
	}
	if l.older = r.newest; l.older == nil {
		r.oldest = l
	} else {
		l.older.newer = l
	}
	r.newest = l
}

// remove takes l, of which nothing is left to drain, out of the backlog.
func (r *Replica) remove(l *Lease) {
	if l.Load.Bulk {
		r.bulk--
	}
	if l.older == nil {
		r.oldest = l.newer
	} else {
		l.older.newer = l.newer
	}
	if l.newer == nil {
		r.newest = l.older
	} else {
		l.newer.older = l.older
	}
	l.left, l.older, l.newer = 0, nil, nil
	if r.oldest == nil { // sums of floats: an empty backlog is exactly empty
		r.backlog = 0
	}
}
