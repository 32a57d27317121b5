package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/lab/sample"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
)

// Figures is what was measured of some requests: those that arrived after the warm-up, whenever they ended. Times are
// seconds from the intended arrival, so that what a client waits at a gate or in a queue counts.
type Figures struct {
	Arrived, Answered int
	Late              int // refused past their deadline
	Refused           int // refused for any other reason: it would be late, its class was full, no replica can hold it
	Lost              int // died with their replica
	Overdue           int // of the answered: the first token came past the class's deadline

	TTFTMean, TTFTP50, TTFTP90, TTFTP99 float64 // to the first token; percentiles by nearest rank
	TPOTMean                            float64 // between two tokens of an answer, mean of the requests' means
	E2EMean                             float64 // to the last token
	HitRate                             float64 // share of prompt tokens found in a replica's cache, of the answered
	Ceiling                             float64 // the same for one cache with the memory of all replicas, LRU, in the order of arrival
	Throughput                          float64 // answers per second that ended after the warm-up and before Span.Until, or at all
	Goodput                             float64 // those of them whose first token came within their class's deadline
	PromptRate                          float64 // prompt tokens per second of those that Throughput counts
}

// Result is a run's figures, of all and by class.
type Result struct {
	Figures
	Classes map[string]Figures
	Errors  map[pool.What]Error // of what weir predicted
	Truth   []pool.TruthStats   // the same as weir tells it, of the whole simulation so far

	AllHits     float64       // HitRate of the whole run, warm-up included
	Skew        float64       // the most work that one replica had, over the mean; 1: all alike
	Lasted      time.Duration // until the last answer
	OutputRate  float64       // answer tokens per second of that, warm-up included
	Preemptions int64
	Tried       int   // requests of the run that went first to a replica that was dead for a second
	Sent        int   // requests of the run, warm-up included
	Distinct    int64 // tokens in different blocks so far: what a cache without end would hold

	all tally
}

// Together is the figures of several runs' requests together, as if of one. Its rates are the answers of all over the time
// of all.
func Together(results []*Result) Figures {
	var all tally
	var lasted time.Duration
	for _, r := range results {
		if r != nil {
			all.add(&r.all)
			lasted += r.Lasted
		}
	}
	f := all.figures(0, lasted)
	f.Throughput, f.Goodput, f.PromptRate = all.rates(func(ending) bool { return true }, lasted)
	return f
}

// rates are answers, those in time, and their prompt tokens, a second, of the ends that count.
func (s *tally) rates(counts func(ending) bool, in time.Duration) (throughput, goodput, prompt float64) {
	for _, e := range s.ends {
		if !counts(e) {
			continue
		}
		throughput++
		prompt += float64(e.prompt)
		if e.good {
			goodput++
		}
	}
	return over(throughput, in.Seconds()), over(goodput, in.Seconds()), over(prompt, in.Seconds())
}

// tally is what requests of one class showed.
type tally struct {
	arrived, late, refused, lost int
	overdue                      int
	ttft                         []float64
	tpot, e2e                    float64 // sums
	tpots                        int
	prompt, cached               int64
	known                        int64 // by one cache for all
	ends                         []ending
}

// ending is when an answer was over, and whether it had begun in time.
type ending struct {
	at     time.Duration
	good   bool
	prompt int // tokens
}

// deadlines of the classes that weir comes with.
var deadlines = func() map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, c := range route.Default().Classes {
		all[c.Name] = c.Deadline
	}
	return all
}()

// first is the class of those who name none.
var first = route.Default().Classes[0].Name

// inTime reports whether an answer began within its class's deadline.
func (j *job) inTime() bool { return j.Seq.First-j.at <= deadlines[className(j)] }

func className(j *job) string {
	if j.Req.Class == "" {
		return first
	}
	return j.Req.Class
}

func (s *tally) answer(j *job) {
	if !j.inTime() {
		s.overdue++
	}
	s.ttft = append(s.ttft, (j.Seq.First - j.at).Seconds())
	s.e2e += (j.Seq.Last - j.at).Seconds()
	if n := j.Req.Output - 1; n > 0 {
		s.tpot += (j.Seq.Last - j.Seq.First).Seconds() / float64(n)
		s.tpots++
	}
	s.prompt += int64(j.Req.Prompt)
	s.cached += int64(j.Seq.Cached)
	s.known += int64(j.known)
}

// add takes in another class.
func (s *tally) add(o *tally) {
	s.arrived, s.late, s.refused, s.lost, s.overdue = s.arrived+o.arrived, s.late+o.late, s.refused+o.refused, s.lost+o.lost, s.overdue+o.overdue
	s.ttft, s.ends = append(s.ttft, o.ttft...), append(s.ends, o.ends...)
	s.tpot, s.e2e, s.tpots = s.tpot+o.tpot, s.e2e+o.e2e, s.tpots+o.tpots
	s.prompt, s.cached, s.known = s.prompt+o.prompt, s.cached+o.cached, s.known+o.known
}

// figures works them out, with the time from which to which ends count.
func (s *tally) figures(from, to time.Duration) Figures {
	slices.Sort(s.ttft)
	f := Figures{
		Arrived: s.arrived, Answered: len(s.ttft), Late: s.late, Refused: s.refused, Lost: s.lost, Overdue: s.overdue,
		TTFTP50: sample.Rank(s.ttft, 50), TTFTP90: sample.Rank(s.ttft, 90), TTFTP99: sample.Rank(s.ttft, 99),
		TPOTMean: over(s.tpot, float64(s.tpots)), E2EMean: over(s.e2e, float64(len(s.ttft))), HitRate: over(float64(s.cached), float64(s.prompt)),
		Ceiling: over(float64(s.known), float64(s.prompt)),
	}
	for _, t := range s.ttft {
		f.TTFTMean += t
	}
	f.TTFTMean = over(f.TTFTMean, float64(len(s.ttft)))
	f.Throughput, f.Goodput, f.PromptRate = s.rates(func(e ending) bool { return e.at >= from && e.at <= to }, to-from)
	return f
}

// over is a/b, and 0 of nothing.
func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// result sums up.
func (r *run) result() *Result {
	from, to := r.start+r.span.Warmup, r.start+r.span.Until
	if r.span.Until == 0 {
		to = r.ended
	}
	res := &Result{Classes: map[string]Figures{}, Lasted: r.ended - r.start, Sent: r.total.arrived, Distinct: r.sim.ceiling.distinct()}
	for _, name := range slices.Sorted(maps.Keys(r.classes)) {
		res.all.add(r.classes[name])
		res.Classes[name] = r.classes[name].figures(from, to)
	}
	res.Figures = res.all.figures(from, to)
	res.AllHits = over(float64(r.total.cached), float64(r.total.prompt))
	res.OutputRate = over(float64(r.total.output), res.Lasted.Seconds())
	if r.warm == nil { // nothing was measured
		r.warm = r.begun
	}
	var most, sum float64
	for i := range r.sim.replicas {
		d := r.since(i)
		d.add(r.sim.fates[i].gone)
		most, sum = max(most, d.work), sum+d.work
		res.Preemptions += d.preemptions
	}
	res.Tried = r.tried
	res.Errors = r.errors()
	if s, ok := r.sim.Estimates(0); ok {
		res.Truth = s.Truth
	}
	res.Skew = over(most*float64(len(r.sim.replicas)), sum)
	return res
}

// work is the seconds that a replica's tokens took, without what each step costs whatever it holds: of two replicas
// that never idle, the one with twice the sequences works twice as much.
func work(p step.Profile, s step.Stats) float64 {
	return (s.Busy - time.Duration(s.Steps)*p.Base).Seconds()
}
