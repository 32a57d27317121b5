// Package scrape reads what replicas tell of themselves: GET http://endpoint/metrics once per interval, page
// to pool.Sample.
//
//	Running, Waiting   requests in the batch and in the queue, sums over all series
//	KV                 share of KV in use, maximum over all series
//	KVTokens           kv_cache_size_tokens, else num_gpu_blocks times block_size, labels of vllm:cache_config_info, summed;
//	                   sglang:max_total_num_tokens
//	Tokens             prompt and generated tokens, sums; from vLLM unknown unless both are there
//	Prompt             prompt tokens alone, cached ones included
//	Computed           uncached prompt tokens; from vLLM the mean of those begun and those done, or of those begun alone
//	Answers,           of the requests that ended; TTFT, InterToken, Queue and Hits likewise have a count and a sum over
//	AnswerTokens       all series, and are unknown unless both are there
//	Started            process_start_time_seconds, maximum
//
// names.go has the names, of vLLM and of SGLang. Series differ by engine (data parallel), model and adapter; their order
// does not count. Those that differ in tp_rank, pp_rank or moe_ep_rank alone are of one engine: the largest counts. A field
// whose series are missing, or of which one is NaN, infinite, negative, a share above 1 or a count above 2^53, is unknown,
// never zero. A page that is not what it says it is changes nothing: the last Sample grows stale.
//
// Pace: replicas start at random phases of the interval, so that their pages do not arrive at once. A scrape
// may take 0.9 of the interval. A replica that fails is tried again at the usual pace until it has failed
// failAfter times, so that a lost scrape is made good before its gauges are stale (pool.Stale, three
// intervals of the default one). Then the pause doubles up to maxPause intervals: its gauges are not believed
// any more, and when it comes back it is read within four seconds.
package scrape

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

const (
	// Interval is the default pace: gauges that are older than a few seconds are of no use against queues that
	// build up in one, and vLLM's page costs the replica some milliseconds.
	Interval = time.Second

	// Quiet is how long nothing is logged of a replica that comes and goes after it was said to fail: two lines in a
	// minute from each are for people, and its counters tell the rest.
	Quiet = time.Minute

	failAfter = 3
	maxPause  = 4
)

// Target is a replica to scrape.
type Target struct {
	Pool     string // for log lines and Stats
	Endpoint string // ip:port, IPv6 in brackets
	// Observe takes each Sample, one at a time per target, from the target's own goroutine.
	Observe func(now time.Time, s pool.Sample)
	// Refused is called for each scrape whose connection the host refused, from the same goroutine.
	Refused func(now time.Time)
}

// Stats counts the scrapes of a target since the start.
type Stats struct {
	Pool, Endpoint string
	Scrapes        uint64 // that ended, failures included
	Failures       uint64
}

// Scraper scrapes a fixed set of targets.
type Scraper struct {
	interval time.Duration
	client   *http.Client
	replicas []*replica
}

// New returns a scraper of the targets at one pace. interval is positive. log gets at most one line when a
// replica begins to fail and one when it is back, both once in Quiet, and one for each gauge that it lacks.
func New(interval time.Duration, targets []Target, log *slog.Logger) *Scraper {
	s := &Scraper{interval: interval, client: &http.Client{
		Timeout: interval * 9 / 10,
		// A replica does not choose what weir dials.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{ // no Proxy: endpoints are dialled as Envoy dials them
			MaxIdleConnsPerHost:    1,
			IdleConnTimeout:        10 * maxPause * interval,
			MaxResponseHeaderBytes: 64 << 10,
		},
	}}
	for _, t := range targets {
		s.replicas = append(s.replicas, &replica{
			Target: t, client: s.client, interval: interval,
			log: log.With("pool", t.Pool, "endpoint", t.Endpoint),
		})
	}
	return s
}

// Run scrapes until ctx ends, and returns nil when every goroutine it started has ended. Call it once.
func (s *Scraper) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, r := range s.replicas {
		all.Go(func() { r.run(ctx) })
	}
	<-ctx.Done()
	all.Wait()
	s.client.CloseIdleConnections()
	return nil
}

// Stats returns the counts of every target, in the order of New. Safe while Run runs.
func (s *Scraper) Stats() []Stats {
	all := make([]Stats, len(s.replicas))
	for i, r := range s.replicas {
		all[i] = Stats{r.Pool, r.Endpoint, r.scrapes.Load(), r.failures.Load()}
	}
	return all
}
