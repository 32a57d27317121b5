package pool

import (
	"time"

	"github.com/weirproxy/weir/pkg/knee"
)

// Cold reports whether the replica had computed nothing but what weir sent when weir first read its counters, or has
// restarted since: what weir's index does not know is not cached. Safe outside the critical section.
func (r *Replica) Cold() bool { return r.cold.Load() }

// View is a replica's load at one instant, as picking and gating see it.
type View struct {
	Backlog float64     // V: uncached prompt tokens ahead
	Prefill float64     // P: seconds per uncached token
	Step    float64     // D by the pool's rates: seconds of a step without prefill,
	Price   float64     // and P by them: what a request's own tokens are priced by
	Wait    float64     // V*P, seconds
	Behind  float64     // seconds that those who wait for it add (Queue), and bulk of others that is to be expected (share)
	Seat    float64     // seconds until a seat is free behind them
	Room    float64     // seconds until KV is
	Tau     float64     // the knee's backlog, seconds
	Used    float64     // share of usable KV in use; may pass 1, as what was sent is an estimate
	Memory  knee.Memory // of KV
	KV      float64     // the same with the answers that are to come of what was sent since the last gauge
	Free    bool        // a seat is free
	Down    bool        // it fails: to be picked only if all do
	NoBulk  bool        // it is kept free of bulk, as others send to the pool, too

	drained float64 // of weir's own backlog since the last event
}

// Place is the wait for a seat and KV, in seconds.
func (v *View) Place() float64 { return max(v.Seat, v.Room) }

// Below reports whether the replica is below its knee: backlog, KV and seats.
func (v View) Below() bool { return v.Wait < v.Tau && v.Used < 1 && v.Free }

// View returns the replica's load at now.
func (r *Replica) View(now time.Time) (v View) {
	r.view(now, &v)
	return v
}

// view is View into *v: a copy less, where every replica of a large pool is looked at.
func (r *Replica) view(now time.Time, v *View) {
	theirs, own := r.drainedBy(now)
	v.drained = own
	v.Backlog = r.theirs - theirs + r.backlog - own
	v.Prefill, v.Step, v.Price, v.Tau = r.prefill, r.step, r.price, r.tau
	v.Wait = v.Backlog * r.prefill
	v.Used, v.KV = r.kv(now)
	if v.KV != r.memoryOf {
		r.memoryOf, r.memory = v.KV, knee.MemoryWith(v.KV)
	}
	v.Memory = r.memory
	v.Free = r.sequences < float64(r.seats)
	v.Down, v.NoBulk = r.health.failing() && r.down(now), false
}

// Delay is the mean over replicas of their prefill waits, in seconds: what a cache miss delays.
type Delay struct {
	All         float64
	Interactive float64 // with those that hold bulk to be prefilled as zero: interactive requests do not queue behind that
}

// Views returns each replica's load at now, by slot, with Behind, Seat, Room and NoBulk, and the mean of their waits. The
// next call uses the memory again.
func (p *Pool) Views(now time.Time) (views []View, mean Delay) {
	for i, r := range p.Replicas {
		v, q := &p.views[i], &p.queue[i]
		r.view(now, v)
		v.Behind = q.tokens * v.Prefill
		v.Seat, v.Room = r.placeWait(q.requests, v.Used)
		mean.All += v.Wait + v.Behind
		if !r.holdsBulk(v.drained) {
			mean.Interactive += v.Wait + v.Behind
		}
	}
	if !p.alone() {
		p.share(now)
	}
	n := float64(max(len(p.views), 1))
	return p.views, Delay{mean.All / n, mean.Interactive / n}
}

// kv is the share of usable KV in use, and that with the answers to come. With a fresh gauge: the gauge and what was sent
// since. Without: the blocks that live leases pin in the index, weir's own count, answers included.
func (r *Replica) kv(now time.Time) (used, all float64) {
	if r.sampled && r.sample.HasKV && now.Sub(r.sample.At) < Stale {
		used = r.sample.KV/r.maxKV + r.Share(r.fresh)
		return used, used + r.Share(r.promised)
	}
	all = r.Share(float64(r.Index.Pinned()) * r.block)
	return all, all
}

// Opens returns when time alone may bring the replica to a wait below wait seconds and its KV, which is kv of v, to most:
// its backlog drains, and a KV gauge that is not read again goes stale. ok is false when it takes an event: a seat, an
// end, a scrape.
func (r *Replica) Opens(now time.Time, v View, wait, kv, most float64) (at time.Time, ok bool) {
	d, ok := r.Drains(now, v, wait)
	if !ok || !v.Free {
		return at, false
	}
	at = now.Add(d)
	if kv <= most {
		return at, true
	}
	stale := r.sample.At.Add(Stale)
	if !r.sampled || !r.sample.HasKV || !stale.After(now) {
		return at, false
	}
	if stale.After(at) {
		at = stale
	}
	return at, true
}

// Leases is how many are live on the replica.
func (r *Replica) Leases() int { return r.leases }

// Drains returns how long from now the backlog takes to fall below wait seconds, and ok = false when time
// alone does not bring it there: the replica shows no progress.
func (r *Replica) Drains(now time.Time, v View, wait float64) (d time.Duration, ok bool) {
	if v.Wait < wait {
		return 0, true
	}
	d = time.Duration((v.Wait - wait) * float64(time.Second))
	return d, !now.Add(d).After(r.patience)
}

// Share is how much of the replica's usable KV that many tokens take.
func (r *Replica) Share(tokens float64) float64 { return tokens / (r.maxKV * r.kvTokens) }

// Stats is one replica as /debug/pool shows it.
type Stats struct {
	Endpoint      string  `json:"endpoint"`
	Leases        int     `json:"leases"`
	Foreign       float64 `json:"foreign"` // requests of others, as of the last scrape that told
	PendingTokens float64 `json:"pending_tokens"`
	BacklogTokens float64 `json:"backlog_tokens"`
	WaitSeconds   float64 `json:"wait_seconds"`
	TauSeconds    float64 `json:"tau_seconds"`
	KV            float64 `json:"kv"`
	KVTokens      float64 `json:"kv_tokens"`
	Below         bool    `json:"below_knee"`
	Down          bool    `json:"down"`    // not to be picked now
	Failing       bool    `json:"failing"` // until an answer or its counters show that it works
	IndexPinned   int     `json:"index_pinned_blocks"`
	Restarts      int     `json:"restarts"` // that weir has seen
	Scrape        *Scrape `json:"scrape"`   // null: never scraped
}

// Stats describes the replica at now.
func (r *Replica) Stats(now time.Time) Stats {
	v := r.View(now)
	s := Stats{
		Endpoint: r.Endpoint, Leases: r.leases, Foreign: r.foreign, BacklogTokens: v.Backlog, PendingTokens: v.Backlog + r.output,
		WaitSeconds: v.Wait, TauSeconds: v.Tau, KV: v.KV, KVTokens: r.kvTokens, Below: v.Below(), Down: v.Down, Failing: r.health.failing(), IndexPinned: r.Index.Pinned(), Restarts: r.restarts,
	}
	if r.sampled {
		s.Scrape = r.scrape(now)
	}
	return s
}
