package pool

import "time"

// Load is what one request puts on a replica, in tokens.
type Load struct {
	Prompt   float64 // of the whole prompt
	Uncached float64 // u: of the prompt that the replica must compute, at least one
	Output   float64 // out: of all its answers, expected
	Bulk     bool    // nobody waits for it
	Prompts  float64 // in the list that it is; 0: one
	Answers  float64 // to all of them, as many to each; 0: one
	Text     *Text   // that Prompt is estimated by; nil: Prompt is exact
	Plain    float64 // Prompt at chain.BytesPerToken, if it is estimated
	Aside    bool    // the replica answers it without its engine, whose counters do not have it

	rest   float64 // of the time to its first token (first.go), seconds
	beside float64 // what it adds to V beside its uncached tokens (package comment)
}

// To the replica each answer is a request of its own, with its prompt: it runs or waits, takes a seat, and is counted. Those to
// one prompt compute it once.

// sequences is how many requests it is to the replica.
func (q *Load) sequences() float64 { return max(q.Answers, 1) }

// copies is how many of them have the same prompt.
func (q *Load) copies() float64 { return q.sequences() / max(q.Prompts, 1) }

// context is the tokens in their contexts on average: prompt and half of the answer.
func (q *Load) context() float64 { return q.copies()*q.Prompt + q.Output/2 }

// life is how long its answers take with steps of d seconds: they run at once.
func (q *Load) life(d float64) float64 { return q.Output / q.sequences() * d }

// Lease is the load of one request on one replica, until it is released. It belongs to the Replica, not to
// its endpoint: a late Release never touches a new replica at an old address. A live Lease must not be copied.
type Lease struct {
	Replica *Replica
	Load    Load

	live         bool
	left         float64 // of Load.Uncached and what is beside it: has not drained
	older, newer *Lease  // neighbours in the replica's backlog while left > 0
	gauges       int     // Replica.gauges when it was charged
	charged      time.Time
	begins       float64 // Replica.steps when its first token is expected
	formula      float64 // first without the rest
	first        float64 // seconds from its charge to its first token, as predicted then
}

// charge adds the load.
func (r *Replica) charge(now time.Time, l *Lease, q Load) {
	r.advance(now)
	if r.leases == 0 {
		r.begin(now)
	}
	formula := r.firstToken(q)
	r.longest = max(r.longest, q.Uncached)
	r.little.step(now, r.leases)
	r.leases++
	r.sequences += q.sequences()
	r.context += q.context()
	r.output += q.Output
	r.fresh += q.Uncached
	r.promised += q.Output
	r.total += q.copies()*q.Prompt + q.Output
	r.most = max(r.most, r.sequences)
	r.each = r.context / r.sequences
	*l = Lease{Replica: r, Load: q, live: true, gauges: r.gauges, charged: now, formula: formula, first: formula + q.rest}
	l.begins = r.begins(now, l.first)
	if !q.Aside {
		r.audit.sent.add(l, 1)
	}
	r.push(l)
	r.health.try(now, l)
	r.pace(now)
}

// costs notes what a request costs that r is charged with, and what stands beside it in r's V.
func (p *Pool) costs(now time.Time, r *Replica, q *Load) {
	own := q.Uncached * p.rates.Token
	p.work.add(own)
	p.kvTime.add(r.Share(q.Uncached+q.Output) * q.life(r.step))
	if q.Bulk {
		p.bulk.add(now, own)
		p.bulkWork.add(own)
		q.beside = q.Uncached * r.unsure
		if !p.alone() {
			q.beside += q.Uncached * (1/p.Own() - 1)
		}
	} else {
		p.interactiveWork.add(own)
		p.interactive.add(now, q.Uncached*r.prefill+r.decode)
		if p.bulkComes(now) {
			q.beside = r.ownStep(now)
		}
	}
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
	r.little.step(now, r.leases)
	r.little.end(now.Sub(l.charged))
	r.leases--
	r.sequences -= l.Load.sequences()
	r.context -= l.Load.context()
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

// Computed is the tokens of its prompt that the replica holds at now, by V: those that were cached, and of the others what has
// drained. What is beside them in V drains first. 0 while the replica fails or is stalled, as V is not believed then, and
// once the lease is released.
func (l *Lease) Computed(now time.Time) float64 {
	r := l.Replica
	if !l.live || r.health.failing() || r.Stalled(now) {
		return 0
	}
	r.advance(now)
	return l.Load.Prompt - min(l.left, l.Load.Uncached)
}

// push makes l the newest of the backlog.
func (r *Replica) push(l *Lease) {
	if l.left = l.Load.Uncached + l.Load.beside; l.left <= 0 {
		return
	}
	r.backlog += l.left
	r.queued += l.Load.sequences()
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
	r.queued -= l.Load.sequences()
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
