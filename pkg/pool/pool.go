// Package pool is the replicas of one pool and the load that weir put on each.
//
// A replica's backlog V, the uncached prompt tokens ahead of a new request, is a fluid: a Lease adds its
// tokens u, and between events V drains at 1/P (package knee), the oldest lease first:
//
//	V = sum over live leases of what of u + beside has not drained
//
// beside is D/P of an interactive request while bulk comes, the step that it takes (bulk.go), and u*(1/own - 1) of bulk while
// others send to the pool, as theirs comes with it (shared.go); else nothing.
//
// Each lease knows its own rest, so that leases that end early, in any order, take back exactly that.
//
// Draining is credited only while the replica shows progress (Patience): a hung replica never looks idle.
//
// Nothing here locks: the spine's one critical section per pool guards every replica's load.
package pool

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/knee"
	"github.com/weirproxy/weir/pkg/prefix"
)

// Pool is a set of replicas that serve the same models: an Envoy cluster.
type Pool struct {
	Name     string // the Envoy cluster's
	Replicas []*Replica
	Popular  *prefix.Popularity
	Config   Config

	ids        []uint64 // of Replicas, by their endpoint alone
	byEndpoint map[string]*Replica
	views      []View // of Views
	queue      []queued
	queues     bool // somebody is in queue

	answer          answer
	foreign         foreign
	theirs, ran     float64 // requests of others, and all, that the replicas ran when each last told
	work            mean    // Umean, of u*p over requests, seconds
	interactiveWork mean    // the same of those that are not bulk
	kvTime          mean    // of their KV times
	interactive     load    // of requests that are not bulk
	bulk            load    // of those that are
	bulkWork        mean    // of their u*p, seconds
	bulkRanks       []int
	maxLoads        []float64 // the interactive load that so many replicas take, in replicas
}

// New returns a pool of idle replicas with empty caches. cfg is valid; endpoints are canonical (package
// discover) and each stands once.
func New(name string, endpoints []string, cfg Config) *Pool {
	p := &Pool{Name: name, Config: cfg, Popular: &prefix.Popularity{}, byEndpoint: map[string]*Replica{}}
	blocks := kvBlocks(float64(cfg.KVTokens))
	for i, e := range endpoints {
		r := &Replica{
			Endpoint: e, Slot: i, rates: cfg.Rates(), kvTokens: float64(blocks * chain.BlockTokens), seats: cfg.Seats,
			Index: prefix.NewIndex(blocks), memory: knee.MemoryWith(0),
		}
		r.pace(time.Time{})
		p.Replicas = append(p.Replicas, r)
		p.ids = append(p.ids, xxhash.Sum64String(e))
		p.byEndpoint[e] = r
	}
	p.answer.bits.Store(math.Float64bits(float64(cfg.OutputTokens)))
	p.bulkRanks, p.maxLoads = bulkRanks(p.ids), maxLoads(len(endpoints))
	p.views, p.queue = make([]View, len(endpoints)), make([]queued, len(endpoints))
	return p
}

// kvBlocks is the blocks of a cache of that size: whole ones, so that a full index is a full cache.
func kvBlocks(tokens float64) int { return int(max(min(tokens, maxTokens)/chain.BlockTokens, 1)) }

// Replica returns the replica at an endpoint, nil for none.
func (p *Pool) Replica(endpoint string) *Replica { return p.byEndpoint[endpoint] }

// Home returns the slot of the key's home, -1 in an empty pool.
func (p *Pool) Home(key uint64) int { return prefix.Home(key, p.ids) }

// Score orders slot i for ties on key: prefix.Score.
func (p *Pool) Score(key uint64, i int) uint64 { return prefix.Score(key, p.ids[i]) }

// workGain is the weight of a new request in the moving mean of work (DESIGN.md 4).
const workGain = 0.01

// Work is Umean: the moving mean of a request's own prefill time, in seconds; 0 before the first request.
func (p *Pool) Work() float64 { return float64(p.work) }

// InteractiveWork is the same of requests that are not bulk.
func (p *Pool) InteractiveWork() float64 { return float64(p.interactiveWork) }

// KVTime is the moving mean of the time for which a request would take all KV of a replica, in seconds: the share that
// it needs times its life there; 0 before the first request.
func (p *Pool) KVTime() float64 { return float64(p.kvTime) }

// mean is a moving mean of the load of requests.
type mean float64

func (m *mean) add(v float64) {
	if *m == 0 {
		*m = mean(v)
	}
	*m += workGain * (mean(v) - *m)
}

// Charge puts a request's load on r, as the lease l: a zero one, or one that was released.
func (p *Pool) Charge(now time.Time, l *Lease, r *Replica, q Load) {
	own := q.Uncached * r.rates.Token
	p.work.add(own)
	p.kvTime.add(r.Share(q.Uncached+q.Output) * q.Output * r.decode)
	if q.Bulk {
		p.bulk.add(now, own)
		p.bulkWork.add(own)
		if !p.alone() {
			q.beside = q.Uncached * (1/p.Own() - 1)
		}
	} else {
		p.interactiveWork.add(own)
		p.interactive.add(now, q.Uncached*r.prefill+r.decode)
		if p.bulkComes(now) {
			q.beside = r.ownStep(now)
		}
	}
	r.charge(now, l, q)
}

// Patience is how long a replica may go without any sign of progress before its backlog stops draining: three
// scrapes of one second, so that a single lost one changes nothing.
const Patience = 3 * time.Second

// Replica is one model server of a pool and the load that weir put on it.
type Replica struct {
	Endpoint string // ip:port, as Envoy names the host
	Slot     int    // index in Pool.Replicas
	Index    *prefix.Index

	rates    knee.Rates
	kvTokens float64
	seats    int

	at       time.Time // to which the backlog is advanced
	patience time.Time // Patience after the replica was last seen to work, or to begin after idling
	backlog  float64   // V at that time: the sum of left from oldest to newest
	oldest   *Lease    // drains first
	newest   *Lease
	bulk     int     // bulk leases among them
	decode   float64 // D, P and tau with the live leases, in seconds: charge and Release change them
	prefill  float64
	tau      float64
	leases   int
	health   health      // beside leases: a look at all of a large pool's replicas reads few cache lines of each
	memory   knee.Memory // of KV promised, as of the last view
	memoryOf float64
	longest  float64 // uncached tokens of the longest prompt since the last progress, or not yet computed then
	context  float64 // tokens that live leases hold on average: prompt and half of the answer
	output   float64 // tokens that live leases are expected to generate
	fresh    float64 // uncached prompt tokens of live leases charged since the last KV gauge,
	promised float64 // and the expected tokens of their answers
	gauges   int     // KV gauges seen

	most    int       // leases that were live at once since the last scrape
	ran     float64   // requests that it ran, as of met
	foreign float64   // those of others among them
	met     time.Time // the last sample that told of them; zero: none
	each    float64   // tokens that a live lease held on average when the last one came

	sample   Sample
	sampled  bool
	known    bool        // a token counter was read, or a restart seen
	total    float64     // tokens of all that weir sent before that
	cold     atomic.Bool // it had computed nothing else then
	counted  time.Time   // of the last sample with a token counter; zero: none
	lately   counts      // between the last two samples
	restarts int
}

// advance drains the backlog up to now. now never runs backwards past the last event.
func (r *Replica) advance(now time.Time) {
	if !now.After(r.at) {
		return
	}
	n := r.drainedBy(now)
	r.at = now
	r.backlog -= n
	for l := r.oldest; l != nil && (n > 0 || r.backlog <= 0); l = r.oldest {
		if l.left > n && r.backlog > 0 { // an empty backlog holds nobody, whatever rounding left of them
			l.left -= n
			return
		}
		n -= l.left
		r.remove(l)
	}
}

// drainedBy is the tokens that drain from the last event until now, without the credit for time in which the
// replica showed no progress.
func (r *Replica) drainedBy(now time.Time) float64 {
	if r.backlog == 0 {
		return 0
	}
	if now.After(r.patience) {
		now = r.patience
	}
	dt := now.Sub(r.at).Seconds()
	if dt <= 0 {
		return 0
	}
	return min(dt/r.prefill, r.backlog)
}

// progress notes that the replica works: its backlog drains for Patience, and its failures are past.
func (r *Replica) progress(now time.Time) {
	r.begin(now)
	r.health = health{}
}

// begin gives the replica Patience to show progress.
func (r *Replica) begin(now time.Time) {
	r.patience = now.Add(Patience)
	r.longest = 0
	for l := r.oldest; l != nil; l = l.newer {
		if l.left >= 1 { // a whole token
			r.longest = max(r.longest, l.Load.Uncached)
		}
	}
}

// resize takes the size of the replica's KV cache from its own metrics.
func (r *Replica) resize(tokens float64) {
	blocks := kvBlocks(tokens)
	if size := float64(blocks * chain.BlockTokens); size != r.kvTokens {
		r.kvTokens = size
		r.Index.Resize(blocks)
	}
}

// pace takes the replica's rates for what it runs now.
func (r *Replica) pace(now time.Time) {
	r.decode = r.rates.Decode(r.running(now))
	r.prefill = r.rates.Prefill(r.decode)
	r.tau = r.rates.Tau(r.decode)
}
