package pool

import (
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// How long an answer is weir never sees, and the replicas' counters tell one mean of all. But a lease's life tells of its
// own: it is the time to the first token, and then one step for each other token.
//
//	guess  = 1 + steps that the replica has taken since the time at which the first token was predicted
//	level  = moving sum of answer tokens counted / moving sum of guesses that ended meanwhile
//	output = mean(guess of its kind) * level
//
// The level takes out what guesses are off by in general, so that the mean over all kinds is the counters'.

const (
	// maxKinds bounds what is told apart: a class and a model each, those that come first. The rest has the pool's mean.
	maxKinds = 64
	// kindLeast is the answers from which a kind's own mean is believed, and those that replicas have counted by then.
	kindLeast = 20
	// kindRecent is the requests from which a kind's quantiles are.
	kindRecent = 128
	// levelMemory is the answers over which the level is learned: what is under way between two scrapes is little beside them.
	// levelPrior is those that its first value, 1, counts for.
	levelMemory = 500.0
	levelPrior  = 1.0
	// maxGuess bounds a guess, in tokens of the mean of all answers: a client that reads slowly holds its lease for longer.
	maxGuess = 20
	// leastGap and mostGap bound the mean time between two tokens, in seconds.
	leastGap, mostGap = 1e-5, 60.0
	// maxLevel bounds the level, either way: what is further off is no answer of weir's own.
	maxLevel = 4
)

// kind is the answers of one Kind.
type kind struct {
	Kind
	bits   atomic.Uint64 // of the expected tokens, a float64; 0: too few to tell
	mean   float64       // of guesses
	spread float64       // moving mean of |guess/mean - 1|
	n      int           // answers
	at     time.Time
	recent []float64 // the last guesses, in a ring, one for each request
	next   int       // in it
}

// outputs is the kinds of a pool.
type outputs struct {
	kinds           atomic.Pointer[map[Kind]*kind] // copied when one is added
	order           []*kind
	guesses, tokens float64 // moving sums
	counted         float64 // answers that replicas counted: without them no guess is believed
}

func (o *outputs) init(output float64) {
	o.kinds.Store(&map[Kind]*kind{})
	o.guesses, o.tokens = levelPrior*output, levelPrior*output
}

// count takes in the answers that ended between two scrapes, what was guessed of them, and the tokens that were counted.
func (o *outputs) count(answers, guesses, tokens float64) {
	keep := math.Pow(1-1/levelMemory, max(answers, 0))
	o.guesses, o.tokens = keep*o.guesses+guesses, keep*o.tokens+tokens
	o.counted += answers
}

// level is what guesses are multiplied with.
func (o *outputs) level() float64 { return min(max(o.tokens/o.guesses, 1/maxLevel), maxLevel) }

// OutputOf is the tokens that an answer of that kind is expected to have: Output until enough ended. Safe outside the
// critical section.
func (p *Pool) OutputOf(k Kind) float64 {
	if known := (*p.outputs.kinds.Load())[k]; known != nil {
		if bits := known.bits.Load(); bits != 0 {
			return math.Float64frombits(bits)
		}
	}
	return p.Output()
}

// of returns the answers of a kind, nil if all places are taken.
func (o *outputs) of(k Kind) *kind {
	old := *o.kinds.Load()
	if known := old[k]; known != nil || len(o.order) >= maxKinds {
		return known
	}
	all := maps.Clone(old)
	all[k] = &kind{Kind: k}
	o.order = append(o.order, all[k])
	o.kinds.Store(&all)
	return all[k]
}

// learn takes the guess for answers of a kind that ended together, as many as one request asked for.
func (o *outputs) learn(now time.Time, k Kind, answers, guess float64) {
	known := o.of(k)
	if known == nil {
		return
	}
	if len(known.recent) < kindRecent {
		known.recent = append(known.recent, guess)
	} else {
		known.recent[known.next%kindRecent] = guess
	}
	known.next++
	known.n, known.at = known.n+int(answers), now
	gain := max(answers/float64(known.n), 1-math.Pow(1-answerGain, answers))
	known.mean += gain * (guess - known.mean)
	known.spread += gain * (math.Abs(guess/known.mean-1) - known.spread)
	if known.n >= kindLeast && o.counted >= kindLeast {
		known.bits.Store(math.Float64bits(min(max(known.mean*o.level(), 1), mostAnswer)))
	}
}

// steps is how many tokens an answer would have got on a replica that gave one all the time: by the mean time between two
// tokens from scrape to scrape, and its D until that is told.
type steps struct {
	n   float64
	at  time.Time
	gap float64 // seconds, as of the last scrape that told; 0: none did
}

// read is the steps at now, for a replica with steps of d seconds.
func (s *steps) read(now time.Time, d float64) float64 {
	if s.gap > 0 {
		d = s.gap
	}
	return s.n + max(now.Sub(s.at).Seconds(), 0)/d
}

// tell takes in what a scrape tells of the time since the one before. A gap that no token takes changes nothing: the steps
// never fade.
func (s *steps) tell(now time.Time, between Summary, d float64) {
	if gap := between.Sum / between.Count; between.Has && gap >= leastGap && gap <= mostGap {
		s.gap = gap
	}
	if s.at.IsZero() { // counted from the first scrape
		s.at = now
	}
	s.n, s.at = s.read(now, d), now
}

// guess is the tokens of an answer whose lease ends now, most at most.
func (r *Replica) guess(now time.Time, l *Lease, most float64) float64 {
	return min(1+max(r.steps.read(now, r.decode)-l.begins, 0), most)
}

// begins is the steps at which the first token is expected of a request that comes now.
func (r *Replica) begins(now time.Time, first float64) float64 {
	if r.steps.at.IsZero() { // counted from the first request
		r.steps.at = now
	}
	return r.steps.read(now.Add(time.Duration(first*float64(time.Second))), r.decode)
}

// OutputStats is what is learned of the answers of one kind, as people see it.
type OutputStats struct {
	Class      string  `json:"class"`
	Model      string  `json:"model"`
	Expected   float64 `json:"expected"` // tokens, as the cost has it
	P50        float64 `json:"p50"`
	P90        float64 `json:"p90"`
	Answers    int     `json:"answers"`
	Spread     float64 `json:"spread"` // mean of how far an answer is off the mean, as a share of it
	AgeSeconds float64 `json:"age_seconds"`

	recent []float64
	level  float64
}

// Outputs lists what is learned of answers, of the kinds that are believed, in the order in which they came. P50 and P90 are left
// to Rank.
func (p *Pool) Outputs(now time.Time) (all []OutputStats) {
	for _, k := range p.outputs.order {
		if k.bits.Load() == 0 {
			continue
		}
		all = append(all, OutputStats{
			Class: k.Class, Model: k.Model, Expected: p.OutputOf(k.Kind), Answers: k.n, Spread: k.spread, AgeSeconds: now.Sub(k.at).Seconds(),
			recent: slices.Clone(k.recent), level: p.outputs.level(),
		})
	}
	return all
}

// Rank works out P50 and P90. It may be called outside the critical section.
func (s *OutputStats) Rank() {
	slices.Sort(s.recent)
	s.P50, s.P90 = s.level*s.recent[(len(s.recent)-1)/2], s.level*s.recent[(len(s.recent)-1)*9/10]
}
