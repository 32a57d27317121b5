package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/prompt"
	"github.com/weirproxy/weir/pkg/route"
)

// weir is the code that serves, in model time. Three things it gets better than in the field: the tokens of a prompt
// are counted, not estimated from bytes; the constants of the step model are the replica's own; and no body has to be
// parsed.
type weir struct {
	*route.Router
	endpoints []string
	held      []*Call // by arrival
}

// epoch is when model time begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newWeir is weir with lines of its policy changed: KEY=VALUE, in the words of the operator's file.
func newWeir(env Env, lines []string) (*weir, error) {
	cfg, err := configWith(lines)
	if err != nil {
		return nil, err
	}
	r := &weir{}
	for i := range env.Replicas {
		r.endpoints = append(r.endpoints, fmt.Sprintf("10.%d.%d.%d:8000", env.Names%256, i/250, i%250+1))
	}
	r.Router = route.New(cfg, pool.New("sim", r.endpoints, poolConfig(env.Profile)))
	return r, nil
}

func configWith(lines []string) (route.Config, error) {
	cfg := route.Default()
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "=")
		switch key {
		case "balance_on":
			cfg.Pick.BalanceOn = value
		case "affinity":
			cfg.Pick.Affinity = value
		case "queue":
			cfg.Queue = value
		case "rule":
			cfg.Rule = value
		default:
			return cfg, fmt.Errorf("policy: no key %q: use balance_on, affinity, queue or rule", key)
		}
	}
	if err := cfg.Validate(); err != nil {
		return cfg, fmt.Errorf("policy: %w", err)
	}
	return cfg, nil
}

// poolConfig is what an operator would set for a replica of the profile.
func poolConfig(p step.Profile) pool.Config {
	cfg, _ := pool.Default(pool.DefaultProfile)
	cfg.Step, cfg.PerSequence, cfg.PerContextToken, cfg.PerPromptToken = p.Base, p.PerSeq, p.PerContext, p.PerPrefill
	cfg.Chunk, cfg.Seats, cfg.KVTokens = p.MaxBatch, p.MaxSeqs, p.KVTokens
	return cfg
}

func (r *weir) Arrive(now time.Duration, c *Call) bool {
	q := &route.Request{Flow: c.Req.Flow, Parsed: &prompt.Prompt{Chain: c.Chain(), Tokens: c.Req.Prompt, Stream: true}}
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
	r.Router.Observe(epoch.Add(now), r.endpoints[slot], pool.Sample{
		At: epoch.Add(now), Running: float64(s.Running), HasRunning: true, Waiting: float64(s.Waiting), HasWaiting: true,
		KV: s.KVUsage(), HasKV: true, KVTokens: float64(s.KVBlocks * step.BlockTokens), HasSize: true, Tokens: float64(s.Prompt + s.Generated), HasTokens: true,
		Answers: float64(s.Finished), AnswerTokens: float64(s.Answered), HasAnswers: true,
	})
	return true
}
