package load

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Arrival is one request of a workload.
type Arrival struct {
	At     time.Duration // model time since the start
	Kind   string        // what results are summed up by
	Path   string        // such as /v1/chat/completions
	Header http.Header   // beside Content-Type; may be shared and nil
	Body   []byte        // JSON with "stream": true
}

// Result is what became of an Arrival. Durations are model time since its intended start.
type Result struct {
	Kind    string
	At      time.Duration // the intended start; model time since the run's
	Late    time.Duration // until the request was written: the generator's and the network's share
	First   time.Duration // until the first event with text; the time to first token
	Total   time.Duration // until the end of the answer
	Status  int           // 0: no response
	Replica string        // header x-replica
	Usage   Usage
	Err     error // nil only for a complete answer with status 200
}

// Usage is the token counts of an answer's last event.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	Details          struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// Generator sends arrivals to one URL. It is for one Run, and a Loop beside it.
type Generator struct {
	url    string
	speed  float64
	client *http.Client

	sent, settled, done, failed atomic.Int64
}

// New returns a generator for the API at url, such as http://127.0.0.1:10000, whose model time runs speed
// times as fast as the clock.
func New(url string, speed float64) *Generator {
	// A connection for each request under way, all kept: an idle one is used again at once, and the server
	// sees no more connections than it has requests at the busiest moment.
	t := &http.Transport{MaxIdleConnsPerHost: 1 << 16, DisableCompression: true, ReadBufferSize: 16 << 10}
	return &Generator{url: url, speed: speed, client: &http.Client{Transport: t}}
}

// Progress returns how many requests were sent, and of those how many are over and how many of these failed.
func (g *Generator) Progress() (sent, done, failed int) {
	return int(g.sent.Load()), int(g.done.Load()), int(g.failed.Load())
}

// Settled returns how many requests have an answer that has begun, or are over without, each counted once: their First
// does not change any more, even if they are cut from now on.
func (g *Generator) Settled() int { return int(g.settled.Load()) }

// Run sends each arrival at its time, whatever became of the others, and returns when all are over, the
// results in the order of the arrivals, which must be ordered by At. When ctx ends, requests under way and
// those not yet sent fail with its error.
func (g *Generator) Run(ctx context.Context, arrivals []Arrival) []Result {
	defer g.client.CloseIdleConnections()
	results := make([]Result, len(arrivals))
	var wg sync.WaitGroup
	timer := time.NewTimer(0)
	defer timer.Stop()
	start := time.Now()
	for i := range arrivals {
		at := start.Add(time.Duration(float64(arrivals[i].At) / g.speed))
		timer.Reset(time.Until(at))
		select {
		case <-timer.C:
		case <-ctx.Done(): // do returns at once for this one and the rest
		}
		wg.Go(func() {
			results[i] = g.do(ctx, &arrivals[i], at)
			results[i].At = arrivals[i].At
		})
	}
	wg.Wait()
	return results
}

// Loop is a closed loop: that many clients, each with one request under way at any time, until ctx ends. It returns
// the results in the order of their starts. What ctx cut has its error; a client whose request fails goes on with
// the next one, after a second of model time.
func (g *Generator) Loop(ctx context.Context, clients int, job func(i int) Arrival) []Result {
	var next atomic.Int64
	var mu sync.Mutex
	var results []Result
	var wg sync.WaitGroup
	start := time.Now()
	for range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				a := job(int(next.Add(1) - 1))
				at := time.Now()
				r := g.do(ctx, &a, at)
				r.At = g.model(at.Sub(start))
				mu.Lock()
				results = append(results, r)
				mu.Unlock()
				if r.Err != nil {
					g.rest(ctx)
				}
			}
		})
	}
	wg.Wait()
	slices.SortFunc(results, func(a, b Result) int { return cmp.Compare(a.At, b.At) })
	return results
}

// rest waits for a second of model time, or for the end of ctx.
func (g *Generator) rest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(float64(time.Second)/g.speed))
	defer cancel()
	<-ctx.Done()
}

// model is a wall time in model time.
func (g *Generator) model(wall time.Duration) time.Duration {
	return time.Duration(float64(wall) * g.speed)
}
