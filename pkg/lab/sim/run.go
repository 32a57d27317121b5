package sim

import (
	"container/heap"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// run is one Run: what is yet to arrive, and what is counted.
type run struct {
	sim   *Sim
	src   workload.Source
	span  Span
	start time.Duration
	begun []step.Stats // of each replica, when it began
	warm  []step.Stats // when the first measured request came

	coming  *workload.Request // of src
	turns   turns             // later turns of sessions
	held    map[*policy.Call]*job
	total   totals
	classes map[string]*sample

	ended time.Duration // the last answer's end
}

// totals counts every request of a run, measured or not.
type totals struct {
	arrived, answered, late, shed int
	prompt, output                int64 // tokens of the answered
}

func newRun(s *Sim, src workload.Source, span Span) *run {
	r := &run{sim: s, src: src, span: span, start: s.now, held: map[*policy.Call]*job{}, classes: map[string]*sample{}}
	for _, rep := range s.replicas {
		r.begun = append(r.begun, rep.Stats())
	}
	r.pull()
	return r
}

// pull looks at the source's next request.
func (r *run) pull() {
	q, ok := r.src.Next()
	if !ok || r.over(q) {
		q = nil
	}
	r.coming = q
}

// over reports whether a request comes after the span.
func (r *run) over(q *workload.Request) bool { return r.span.Until > 0 && q.At >= r.span.Until }

// next is when the next request arrives.
func (r *run) next() time.Duration {
	at := never
	if r.coming != nil {
		at = r.start + r.coming.At
	}
	if len(r.turns) > 0 {
		at = min(at, r.start+r.turns[0].At)
	}
	return at
}

// take returns it.
func (r *run) take() *job {
	var q *workload.Request
	if r.coming != nil && (len(r.turns) == 0 || r.coming.At <= r.turns[0].At) {
		q = r.coming
		r.pull()
	} else {
		q = heap.Pop(&r.turns).(turn).Request
	}
	j := &job{index: r.total.arrived, at: r.start + q.At, measured: q.At >= r.span.Warmup}
	j.Req = q
	j.Seq = step.Seq{Hashes: q.Blocks, Prompt: q.Prompt, Output: q.Output}
	return j
}

// follow has the session's next turn come, after this one ended.
func (r *run) follow(j *job, end time.Duration) {
	if j.Req.Then == nil {
		return
	}
	if q := j.Req.Then(end - r.start); q != nil && !r.over(q) {
		heap.Push(&r.turns, turn{q, j.index})
		r.sim.agenda.set(r.sim.arrivals(), r.next())
	}
}

func (r *run) arrived(j *job) {
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

func (r *run) class(j *job) *sample {
	name := className(j)
	c := r.classes[name]
	if c == nil {
		c = &sample{}
		r.classes[name] = c
	}
	return c
}

// refused counts a request that ended without an answer: late, or shed for any other reason.
func (r *run) refused(j *job, late bool) {
	var c sample // of the warm-up: for nobody
	count := &c
	if j.measured {
		count = r.class(j)
	}
	if late {
		r.total.late++
		count.late++
	} else {
		r.total.shed++
		count.shed++
	}
	r.follow(j, r.sim.now)
}

func (r *run) answered(j *job, end time.Duration) {
	r.total.answered++
	r.total.prompt += int64(j.Req.Prompt)
	r.total.output += int64(j.Req.Output)
	r.ended = end
	c := r.class(j)
	c.ends = append(c.ends, ending{end, j.Seq.First-j.at <= deadlines[className(j)]})
	if j.measured {
		c.answer(j)
	}
	r.follow(j, end)
}

// turns is the later turns that are yet to come, a heap by time and then by the turn before.
type turns []turn

type turn struct {
	*workload.Request
	after int
}

func (h turns) Len() int { return len(h) }
func (h turns) Less(i, j int) bool {
	return h[i].At < h[j].At || h[i].At == h[j].At && h[i].after < h[j].after
}
func (h turns) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *turns) Push(x any)   { *h = append(*h, x.(turn)) }
func (h *turns) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = turn{}
	*h = old[:len(old)-1]
	return x
}
