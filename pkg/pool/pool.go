// Package pool is the replicas of one pool and the load that weir put on each.
//
// A replica's backlog V, the uncached prompt tokens ahead of a new request, is a fluid: a Lease adds its
// tokens u, and between events V drains at 1/P (package knee), the oldest lease first:
//
//	V = what others let wait there (foreign.go) + sum over live leases of what of u + beside has not drained
//
// beside is D/P of an interactive request while bulk comes, the step that it takes (bulk.go); of bulk it is u times the standard
// deviation of p as a share of it (rates.go), so that it is through when it looks so, and u*(1/own - 1) while others send to the
// pool, as theirs comes with it (shared.go); else nothing.
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

	rates           *knee.Rates // by which requests are priced, alike on all replicas: the mean of theirs
	answer          answer
	texts           texts
	outputs         outputs
	truth           truth
	rest            rest
	demand          demand
	match           match // of their books
	foreign         foreign
	theirs, ran     float64 // requests of others, and all, that the replicas ran when each last told
	gateWait        float64 // moving mean, seconds
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
	rates := cfg.Rates()
	p.rates = &rates
	for i, e := range endpoints {
		r := &Replica{
			Endpoint: e, Slot: i, Index: prefix.NewIndex(blocks),
			rates: rates, common: p.rates, fit: knee.NewFit(rates), learn: cfg.Learn, fixed: cfg.MaxBacklog.Seconds(), seats: cfg.Seats,
			kvTokens: float64(blocks * chain.BlockTokens), maxKV: float64(cfg.MaxKVPercent) / 100,
			block: chain.BlockTokens, capacity: capacity{share: 1}, memory: knee.MemoryWith(0),
		}
		r.pace(time.Time{})
		p.Replicas = append(p.Replicas, r)
		p.ids = append(p.ids, xxhash.Sum64String(e))
		p.byEndpoint[e] = r
	}
	p.texts.init()
	p.outputs.init(float64(cfg.OutputTokens))
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

// PromptToken is the time of an uncached prompt token alone, alike on all replicas, in seconds.
func (p *Pool) PromptToken() float64 { return p.rates.Token }

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
	p.demand.sent(now, r, &q)
	q.rest = p.rest.mean()
	if !q.Aside { // which tells nothing of what requests cost
		p.costs(now, r, &q)
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

	rates    knee.Rates  // as learned
	common   *knee.Rates // the pool's
	fit      knee.Fit
	work     work
	learn    bool
	unsure   float64 // the standard deviation of rates.Token, as a share
	fixed    float64 // Config.MaxBacklog in seconds; 0: tau is computed
	kvTokens float64
	maxKV    float64 // the share of them that is usable
	block    float64 // tokens that a block of Index stands for
	seats    int

	at        time.Time // to which the backlog is advanced
	patience  time.Time // Patience after the replica was last seen to work, or to begin after idling
	backlog   float64   // weir's own part of V at that time: the sum of left from oldest to newest
	oldest    *Lease    // drains first
	newest    *Lease
	queued    float64 // sequences of leases among them
	bulk      int     // those of bulk
	decode    float64 // D, P and tau with the live leases, in seconds: charge and Release change them
	prefill   float64
	tau       float64
	step      float64 // D and P by the pool's rates
	price     float64
	leases    int
	sequences float64     // of them
	health    health      // beside leases: a look at all of a large pool's replicas reads few cache lines of each
	memory    knee.Memory // of KV promised, as of the last view
	memoryOf  float64
	longest   float64 // uncached tokens of the longest prompt since the last progress, or not yet computed then
	context   float64 // tokens in the contexts of live leases on average
	output    float64 // tokens that live leases are expected to generate
	fresh     float64 // uncached prompt tokens of live leases charged since the last KV gauge,
	promised  float64 // and the expected tokens of their answers
	gauges    int     // KV gauges seen

	most    float64   // sequences that were live at once since the last scrape
	ran     float64   // requests that it ran, as of met
	foreign float64   // those of others among them
	waited  float64   // those of others that waited there at the last sample
	theirs  float64   // uncached tokens of others ahead
	met     time.Time // the last sample that told of them; zero: none
	each    float64   // tokens that a live sequence held on average when the last one came

	sample   Sample
	sampled  bool
	known    bool        // a token counter was read, or a restart seen
	total    float64     // tokens of all that weir sent before that
	cold     atomic.Bool // it had computed nothing else then
	counted  time.Time   // of the last sample with a token counter; zero: none
	lately   counts      // between the last two samples
	restarts int

	audit    audit
	capacity capacity
	little   little
	steps    steps
}

// advance drains the backlog up to now. now never runs backwards past the last event.
func (r *Replica) advance(now time.Time) {
	if !now.After(r.at) {
		return
	}
	theirs, n := r.drainedBy(now)
	dt := now.Sub(r.at).Seconds()
	r.work.sequences += dt * r.sequences
	r.work.held += dt * r.context
	r.at = now
	r.theirs -= theirs
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

// drainedBy is the tokens of others and of weir's own leases that drain from the last event until now, those of others first,
// without the credit for time in which the replica showed no progress.
func (r *Replica) drainedBy(now time.Time) (theirs, own float64) {
	if r.backlog == 0 && r.theirs == 0 {
		return 0, 0
	}
	if now.After(r.patience) {
		now = r.patience
	}
	dt := now.Sub(r.at).Seconds()
	if dt <= 0 {
		return 0, 0
	}
	n := dt / r.prefill
	theirs = min(n, r.theirs)
	return theirs, min(n-theirs, r.backlog)
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
	if size := float64(kvBlocks(tokens) * chain.BlockTokens); size != r.kvTokens {
		r.kvTokens = size
		r.size(r.block)
	}
}

// pace takes the replica's rates for what it runs now.
func (r *Replica) pace(now time.Time) {
	requests, context := r.running(now)
	r.decode = r.rates.Decode(requests, context)
	r.prefill = r.rates.Prefill(r.decode)
	if r.tau = r.fixed; r.tau == 0 {
		r.tau = r.rates.Tau(r.decode)
	}
	r.setPrice(requests, context)
}

// setPrice takes the pool's rates for it.
func (r *Replica) setPrice(requests, context float64) {
	r.step = r.common.Decode(requests, context)
	r.price = r.common.Prefill(r.step)
}
