package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
	"github.com/weirproxy/weir/pkg/pool"
)

// run is one Run: what is yet to arrive, and what is counted.
type run struct {
	sim   *Sim
	src   until
	span  Span
	start time.Duration
	begun []step.Stats // of each replica, when it began
	warm  []step.Stats // when the first measured request came

	coming  *workload.Queue // with the later turns of sessions
	held    map[*policy.Call]*job
	total   totals
	classes map[string]*tally
	errs    map[pool.What]*errs

	tried int           // requests that went first to a replica that was dead for deadSecond
	ended time.Duration // the last answer's end
}

// totals counts every request of a run, measured or not.
type totals struct {
	arrived, answered, late, refused, lost int
	prompt, output                         int64 // tokens of the answered, and what the lost had got
	cached                                 int64 // of these prompts' tokens
}

func newRun(s *Sim, src workload.Source, span Span) *run {
	r := &run{sim: s, src: until{src, span.Until}, span: span, start: s.now, held: map[*policy.Call]*job{}, classes: map[string]*tally{}}
	for i, rep := range s.replicas {
		s.fates[i].gone = done{}
		r.begun = append(r.begun, rep.Stats())
	}
	r.coming = workload.NewQueue(r.src)
	return r
}

// until is a source that ends there, 0 for not.
type until struct {
	workload.Source
	end time.Duration
}

// Next implements workload.Source.
func (u until) Next() (*workload.Request, bool) {
	q, ok := u.Source.Next()
	if !ok || u.over(q) {
		return nil, false
	}
	return q, true
}

// over reports whether a request comes too late.
func (u until) over(q *workload.Request) bool { return u.end > 0 && q.At >= u.end }

// next is when the next request arrives.
func (r *run) next() time.Duration {
	at, ok := r.coming.At()
	if !ok {
		return never
	}
	return r.start + at
}

// take returns it.
func (r *run) take() *job {
	q := r.coming.Take()
	j := &job{at: r.start + q.At, measured: q.At >= r.span.Warmup}
	j.Req = q
	j.Seq = step.Seq{Hashes: q.Blocks, Prompt: q.Prompt, Output: q.Output}
	return j
}

// follow has the session's next turn come, after this one ended.
func (r *run) follow(j *job, end time.Duration) {
	if j.Req.Then == nil {
		return
	}
	if q := j.Req.Then(end - r.start); q != nil && !r.src.over(q) {
		r.coming.Add(q)
		r.sim.agenda.set(r.sim.arrivals(), r.next())
	}
}

func (r *run) arrived(j *job) {
	j.index = r.total.arrived
	r.total.arrived++
	j.known = r.sim.ceiling.add(j.Req)
	if r.warm == nil && j.measured {
		for _, rep := range r.sim.replicas {
			r.warm = append(r.warm, rep.Stats())
		}
	}
	if j.measured {
		r.class(j).arrived++
	}
}

func (r *run) class(j *job) *tally {
	name := className(j)
	c := r.classes[name]
	if c == nil {
		c = &tally{}
		r.classes[name] = c
	}
	return c
}

// refused counts a request that ended without an answer: late, or for any other reason.
func (r *run) refused(j *job, late bool) {
	var c tally // of the warm-up: for nobody
	count := &c
	if j.measured {
		count = r.class(j)
	}
	if late {
		r.total.late++
		count.late++
	} else {
		r.total.refused++
		count.refused++
	}
	r.follow(j, r.sim.now)
}

// lost counts a request that died with its replica, or found nobody who took its connection.
func (r *run) lost(j *job) {
	r.sim.open--
	r.total.lost++
	j.Lost = true
	if j.measured {
		r.class(j).lost++
	}
	if j.Seq.Generated > 0 {
		r.total.prompt += int64(j.Req.Prompt)
		r.total.output += int64(j.Seq.Generated)
		r.total.cached += int64(j.Seq.Cached)
	}
	r.follow(j, r.sim.now)
}

// since is what the replica at a place has computed since the run began, or since it joined.
func (r *run) since(i int) (d done) {
	now, p := r.sim.replicas[i].Stats(), r.sim.cfg.profile(i)
	d.prompt, d.output, d.preemptions = now.Prompt-r.begun[i].Prompt, now.Generated-r.begun[i].Generated, now.Preemptions-r.begun[i].Preemptions
	if r.warm != nil {
		d.work = work(p, now) - work(p, r.warm[i])
	}
	return d
}

func sortJobs(all []*job) {
	slices.SortFunc(all, func(a, b *job) int { return cmp.Compare(a.index, b.index) })
}

func (r *run) answered(j *job, end time.Duration) {
	r.total.answered++
	r.total.prompt += int64(j.Req.Prompt)
	r.total.output += int64(j.Req.Output)
	r.total.cached += int64(j.Seq.Cached)
	r.ended = end
	c := r.class(j)
	c.ends = append(c.ends, ending{end, j.inTime(), j.Req.Prompt})
	if j.measured {
		c.answer(j)
		r.forecast(j)
	}
	r.follow(j, end)
}
