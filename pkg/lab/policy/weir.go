package policy

import (
	"fmt"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
)

// weir is the code that serves, in model time. Three things it gets better than in the field: the tokens of a prompt
// are counted, not estimated from bytes; the constants of the step model are the replica's own from the start; and no body has
// to be parsed.
type weir struct {
	*route.Router
	pool      *pool.Pool
	endpoints []string
	gaps      bool // what replicas tell of the gaps between tokens is shown to it
	told      told
	held      []*Call // by arrival
}

// epoch is when model time begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newWeir is weir with lines of its policy changed: KEY=VALUE, in the words of the operator's file, and "gate" for what
// stands in its gate's place (gates).
func newWeir(env Env, lines []string) (Router, error) {
	s, err := settingsOf(env.Profile, lines)
	if err != nil {
		return nil, err
	}
	r := &weir{gaps: s.gaps, told: s.told}
	for i := range env.Replicas {
		r.endpoints = append(r.endpoints, fmt.Sprintf("10.%d.%d.%d:8000", env.Names%256, i/250, i%250+1))
	}
	r.pool = pool.New("sim", r.endpoints, s.replica())
	r.Router = route.New(s.route, r.pool)
	if s.gate != nil {
		return s.gate(env, r), nil
	}
	return r, nil
}

func (r *weir) Arrive(now time.Duration, c *Call) bool {
	q := &route.Request{Flow: c.Req.Flow, Parsed: r.told.prompt(c)}
	q.Class.HeaderClass = c.Req.Class
	d := r.Route(epoch.Add(now), q)
	c.decision = d
	if d.State == route.Held {
		c.State = Held
		r.held = append(r.held, c)
		return true
	}
	c.decided()
	return d.Due
}

// decided takes what the router decided.
func (c *Call) decided() {
	if d := c.decision; d.State == route.Refused {
		c.State, c.Outcome = Refused, d.Outcome
	} else {
		c.State, c.Slot = Sent, d.Choice.First.Slot
	}
}

func (r *weir) Release(now time.Duration, done []*Call) []*Call {
	n := r.Router.Release(epoch.Add(now))
	if n == 0 {
		return done
	}
	keep := r.held[:0]
	for i, c := range r.held {
		if n == 0 {
			keep = append(keep, r.held[i:]...)
			break
		}
		if c.decision.State == route.Held {
			keep = append(keep, c)
			continue
		}
		n--
		c.decided()
		done = append(done, c)
	}
	clear(r.held[len(keep):])
	r.held = keep
	return done
}

func (r *weir) Next() (at time.Duration, ok bool) {
	next := r.Router.Next()
	return next.Sub(epoch), !next.IsZero()
}

func (r *weir) First(now time.Duration, c *Call) {
	c.decision.Status, c.decision.Events = 200, true
	r.Serve(epoch.Add(now), c.decision, r.endpoints[c.Slot])
}

// Retry takes the second choice; that the first failed the router learns when the second answers.
func (r *weir) Retry(now time.Duration, c *Call) bool {
	second := c.decision.Choice.Second
	if second == nil {
		return false
	}
	c.Slot = second.Slot
	return true
}

func (r *weir) Refuse(now time.Duration, slot int) {
	r.Router.Refuse(epoch.Add(now), r.endpoints[slot])
}

func (r *weir) End(now time.Duration, c *Call) bool {
	switch {
	case c.Lost && c.decision.Status == 0: // Envoy's own answer
		c.decision.Status = 503
	case c.Seq.Generated == 0: // the replica could not hold it
		c.decision.Status = 400
	}
	return r.Done(epoch.Add(now), c.decision, route.Answered)
}

// Observe takes what vLLM's gauges and counters say. Those in the API server are in none of them.
func (r *weir) Observe(now time.Duration, slot int, s step.Stats) bool {
	told := pool.Sample{
		At: epoch.Add(now), Running: float64(s.Running), HasRunning: true, Waiting: float64(s.Waiting), HasWaiting: true,
		KV: s.KVUsage(), HasKV: true, KVTokens: float64(s.KVBlocks * step.BlockTokens), HasSize: r.told.kvTokens == 0, Tokens: float64(s.Prompt + s.Generated), HasTokens: true,
		Prompt: float64(s.Prompt), HasPrompt: true,
		Answers: float64(s.Finished), AnswerTokens: float64(s.Answered), HasAnswers: true,
		TTFT: summary(s.Firsts, s.FirstTime.Seconds()), InterToken: summary(s.Gaps, s.GapTime.Seconds()), Queue: summary(s.Admitted, s.QueueTime.Seconds()),
		Hits: summary(s.Queries, float64(s.Hits)), Computed: float64(s.Queries-s.Hits+s.Prompt-s.Cached) / 2, HasComputed: true, Preemptions: float64(s.Preemptions), HasPreemptions: true,
	}
	if !r.gaps {
		told.InterToken = pool.Summary{}
	}
	r.Router.Observe(epoch.Add(now), r.endpoints[slot], told)
	return true
}

func summary(n int64, sum float64) pool.Summary {
	return pool.Summary{Count: float64(n), Sum: sum, Has: true}
}
