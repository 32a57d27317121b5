package pool

import (
	"math"
	"time"

	"github.com/weirproxy/weir/pkg/knee"
)

// How many replicas the pool needs to stay below its knee, for those who add and remove some. Two things can lack:
//
//	time     requests come at lambda, and take a replica for u*P + D seconds each: with N replicas as the servers of G/G/N, at
//	         most a hundredth may wait for longer than tau (knee.WaitsLonger)
//	memory   what requests hold of KV, in replicas: with that spread over N, the mean request's expected wait for it
//	         (knee.Memory) may be tau at most
//
// The larger counts. Below the knee V*P is under tau, so that a queue that is longer than tau for more than a hundredth is a pool
// at its knee; the mean passes tau much later, when it has no way back (DESIGN.md 4).
//
// lambda is of what arrives, also of those who are held or refused, and what a request takes of those that were sent, each of
// bulk and the others by itself, as a full pool refuses bulk first. Memory is what the gauges say, or what was charged where
// that is more, times what arrives over what is sent, 4 at most. Steps are longer where there are fewer replicas, and so are
// answers, which hold their memory for as long:
//
//	w     = lambda * (u*p + out*(a + b*ctx))      replicas that work takes, without c0 of each step
//	D(N)  = c0 / (1 - w/N)                        as B = lambda*out*D/N run on each, and prefill has its part of the time
//
// by which what is seen with N replicas is what it would be with N'.

const (
	// neededMemory is the time constant of the rates, seconds: whoever starts a replica thinks in minutes.
	neededMemory = 60.0
	// neededTail is the share that may wait for longer than tau: the p99 of the knee.
	neededTail = 0.01
	// maxNeeded bounds the number.
	maxNeeded = 4096
	// maxUnsent bounds what arrives over what is sent, where what is held is taken for what was sent: in an outage the quotient
	// grows by e each minute, and says nothing but how long ago something was sent.
	maxUnsent = 4.0
	// minIdle bounds 1 - w/N of the replicas as they are: above it a pool is full, and how full is in what waits.
	minIdle = 0.05
)

// pace is the moving mean of what comes in a second. It fades once a second, not with each that comes.
type pace struct {
	rate float64
	at   time.Time
}

func (p *pace) read(now time.Time) float64 {
	return p.rate * math.Exp(-max(now.Sub(p.at).Seconds(), 0)/neededMemory)
}

func (p *pace) add(now time.Time) {
	if now.Sub(p.at) >= time.Second {
		p.rate, p.at = p.read(now), now
	}
	p.rate += 1 / neededMemory
}

// comers is what is known of bulk, or of all else. Means are over those that were sent.
type comers struct {
	arrived, sent pace
	time, square  mean // u*P + D, seconds, and its square
	prefill       mean // u*p of it
	work          mean // u*p + out*(a + b*ctx), seconds
	kv            mean // its KV time, seconds of a replica's KV
	share, life   mean // of a replica's KV, and seconds for which it is held
}

// demand is what comes to a pool.
type demand struct {
	comers         [2]comers // of all but bulk, and of bulk
	last           time.Time
	gap, gapSquare mean // between arrivals, seconds
}

func (d *demand) of(bulk bool) *comers {
	if bulk {
		return &d.comers[1]
	}
	return &d.comers[0]
}

// Arrived notes that a request came, whatever becomes of it.
func (p *Pool) Arrived(now time.Time, bulk bool) {
	d := &p.demand
	d.of(bulk).arrived.add(now)
	if !d.last.IsZero() {
		gap := max(now.Sub(d.last).Seconds(), 1e-9)
		d.gap.add(gap)
		d.gapSquare.add(gap * gap)
	}
	d.last = now
}

// sent notes that one was sent to r.
func (d *demand) sent(now time.Time, r *Replica, q *Load) {
	s := d.of(q.Bulk)
	share, life := r.Share(q.Uncached+q.Output), q.life(r.decode)
	took := q.Uncached*r.prefill + r.decode
	own := q.Uncached * r.rates.Token
	s.sent.add(now)
	s.time.add(took)
	s.square.add(took * took)
	s.prefill.add(own)
	s.work.add(own + q.Output*(r.rates.Seq+r.rates.Context*q.context()/q.sequences()))
	s.kv.add(share * life)
	s.share.add(share)
	s.life.add(life)
}

// Needed is how many replicas a pool needs, and why.
type Needed struct {
	Replicas int     `json:"replicas"` // the larger of the two; 1 at least
	ForTime  int     `json:"for_time"`
	ForKV    int     `json:"for_kv"`
	Time     float64 `json:"time"`     // replicas that requests keep busy, as many as there are now
	KV       float64 `json:"kv"`       // replicas whose memory they hold
	Arrivals float64 `json:"arrivals"` // squared coefficient of variation of the gaps between them
	Services float64 `json:"services"` // and of the time that they take
}

// seen is what a pool's requests take together, by the second.
type seen struct {
	rate, time, square, prefill, work, kv, share, life float64
	sentWork, sentKV                                   float64 // of those that were sent
}

func (d *demand) read(now time.Time) (x seen) {
	for i := range d.comers {
		s := &d.comers[i]
		lambda := s.arrived.read(now)
		sent := min(s.sent.read(now), lambda)
		x.rate += lambda
		x.time += lambda * float64(s.time)
		x.square += lambda * float64(s.square)
		x.prefill += lambda * float64(s.prefill)
		x.work += lambda * float64(s.work)
		x.kv += lambda * float64(s.kv)
		x.share += lambda * float64(s.share)
		x.life += lambda * float64(s.life)
		x.sentWork += sent * float64(s.work)
		x.sentKV += sent * float64(s.kv)
	}
	return x
}

// Needed works out how many replicas the pool needs at now.
func (p *Pool) Needed(now time.Time) Needed {
	d := &p.demand
	x := d.read(now)
	n := Needed{Replicas: 1, ForTime: 1, ForKV: 1, Arrivals: variation(float64(d.gap), float64(d.gapSquare))}
	if !(x.time > 0) || len(p.Replicas) == 0 {
		return n
	}
	n.Services = variation(x.time/x.rate, x.square/x.rate)
	own, tau := p.Own(), p.tau()
	n.Time, n.KV = x.time/own, x.kv/own
	if used, ok := p.kvInUse(now); ok && x.sentKV > 0 {
		n.KV = max(n.KV, used*min(max(x.kv/x.sentKV, 1), maxUnsent))
	}
	idle := max(1-x.sentWork/own/float64(len(p.Replicas)), minIdle)
	longer := func(c int) (times float64, ok bool) { // steps with c replicas than now
		left := 1 - x.work/own/float64(c)
		return idle / left, left > 0
	}
	n.ForTime = least(func(c int) bool {
		times, ok := longer(c)
		load := (x.prefill + (x.time-x.prefill)*times) / own
		return ok && knee.WaitsLonger(c, load, load*own/x.rate, n.Arrivals, n.Services, tau) <= neededTail
	})
	need := knee.NeedOf(x.share / x.rate)
	n.ForKV = least(func(c int) bool {
		times, ok := longer(c)
		used := n.KV * times / float64(c)
		return ok && used < 1 && knee.MemoryWith(used).Wait(need, x.life/x.rate*times) <= tau
	})
	n.Replicas = max(n.ForTime, n.ForKV)
	return n
}

// variation is the squared coefficient of variation by a mean and that of the square.
func variation(mean, square float64) float64 {
	if mean <= 0 {
		return 1
	}
	return max(square/(mean*mean)-1, 0)
}

// least is the smallest number of replicas that do, maxNeeded at most. What do holds of, it holds of every larger number.
func least(do func(int) bool) int {
	low, high := 0, maxNeeded
	for high-low > 1 {
		if mid := (low + high) / 2; do(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// tau is the mean of the replicas', in seconds.
func (p *Pool) tau() (mean float64) {
	for _, r := range p.Replicas {
		mean += r.tau / float64(len(p.Replicas))
	}
	return mean
}

// kvInUse is the KV in use, in replicas, by fresh gauges alone; ok is false unless half of the replicas have one.
func (p *Pool) kvInUse(now time.Time) (used float64, ok bool) {
	fresh := 0
	for _, r := range p.Replicas {
		if r.sampled && r.sample.HasKV && now.Sub(r.sample.At) < Stale {
			used += r.sample.KV / r.maxKV
			fresh++
		}
	}
	if fresh == 0 || 2*fresh < len(p.Replicas) {
		return 0, false
	}
	return used * float64(len(p.Replicas)) / float64(fresh), true
}
