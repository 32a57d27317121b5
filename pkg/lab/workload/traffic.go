package workload

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/lab/sample"
	"github.com/weirproxy/weir/pkg/lab/step"
)

// Pool is the replicas that traffic is looked at for: so many of one profile.
type Pool struct {
	step.Profile
	Replicas int
}

// Traffic is what a router's operator wants to know of a workload before anything is tuned. Shares are of
// prompt tokens, 0 to 1. All of it takes requests in their order of arrival, as if each were over when the
// next one comes.
type Traffic struct {
	Requests int     `json:"requests"`
	Seconds  float64 `json:"seconds"` // from the first arrival to the last
	Rate     float64 `json:"rate"`    // requests per second
	InOut    float64 `json:"in_out"`  // prompt tokens per answer token
	Prompt   Spread  `json:"prompt"`  // tokens
	Output   Spread  `json:"output"`  // tokens

	Repeated  float64  `json:"repeated"`  // in blocks that an earlier prompt had
	Ceiling   float64  `json:"ceiling"`   // found by one cache with the pool's memory: full blocks but the last, answers included
	Unbounded float64  `json:"unbounded"` // found by one that never forgets
	Top       []Shared `json:"top"`       // the shared texts that save most, first

	Routed Serving `json:"routed"` // all caches as one: the best that routing by prefix can do
	Spread Serving `json:"spread"` // round robin: each replica sees every Nth request
}

// Spread is how a number is distributed; percentiles are by nearest rank.
type Spread struct {
	Mean float64 `json:"mean"`
	P10  int     `json:"p10"`
	P50  int     `json:"p50"`
	P90  int     `json:"p90"`
	P99  int     `json:"p99"`
	Max  int     `json:"max"`
}

// Shared is a text that several prompts have at the same place after the same beginning.
type Shared struct {
	Requests int     `json:"requests"`
	Tokens   int     `json:"tokens"` // its length
	End      int     `json:"end"`    // tokens of the prompt up to its end
	Share    float64 `json:"share"`  // what a cache saves by it
}

// Serving is what one way of routing makes of the traffic, on the step model.
type Serving struct {
	Hit      float64 `json:"hit"`      // found in the caches, LRU with the pool's memory
	Uncached float64 `json:"uncached"` // prompt tokens to compute per request
	Prefill  float64 `json:"prefill"`  // share of each replica's time spent on prefill at Rate
	Knee     float64 `json:"knee"`     // requests per second at which the pool saturates (demand.Knee)
	Binds    string  `json:"binds"`    // what it saturates: prefill, decode or KV
}

// ErrNoRequests is a source that yields nothing.
var ErrNoRequests = errors.New("workload: no requests")

// Measure reads s to its end and holds all its requests while it looks at them. Sessions are played as on
// idle replicas.
func Measure(s Source, pool Pool) (*Traffic, error) {
	if err := pool.Validate(); err != nil {
		return nil, err
	}
	if pool.Replicas < 1 {
		return nil, fmt.Errorf("workload: %d replicas", pool.Replicas)
	}
	var all []*Request
	for p := play(s, pool.alone); ; {
		r, ok := p.Next()
		if !ok {
			break
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil, ErrNoRequests
	}
	t := &Traffic{Requests: len(all), Seconds: (all[len(all)-1].At - all[0].At).Seconds()}
	if t.Seconds > 0 {
		t.Rate = float64(len(all)-1) / t.Seconds
	}
	t.Prompt = spread(all, func(r *Request) int { return r.Prompt })
	t.Output = spread(all, func(r *Request) int { return r.Output })
	t.InOut = t.Prompt.Mean / t.Output.Mean
	t.Repeated, t.Unbounded, t.Top = sharing(all)
	t.Routed = serve(all, pool, pool.Replicas, t.Rate)
	t.Ceiling = t.Routed.Hit
	t.Spread = serve(every(all, pool.Replicas), pool, 1, t.Rate)
	return t, nil
}

// alone is when a request ends that an idle replica serves.
func (p *Pool) alone(r *Request) time.Duration {
	decode := time.Duration(r.Output) * p.StepTime(1, r.Prompt, 0)
	return r.At + p.API + p.StepTime(1, 0, r.Prompt) + decode
}

func spread(all []*Request, of func(*Request) int) Spread {
	n, sum := make([]int, len(all)), 0.0
	for i, r := range all {
		n[i] = of(r)
		sum += float64(n[i])
	}
	slices.Sort(n)
	at := func(percent int) int { return sample.Rank(n, percent) }
	return Spread{sum / float64(len(n)), at(10), at(50), at(90), at(99), at(100)}
}

// every returns each nth request, from the first on.
func every(all []*Request, n int) []*Request {
	var some []*Request
	for i := 0; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}
