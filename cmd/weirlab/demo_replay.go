package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirproxy/weir/pkg/lab/load"
)

const (
	// drainLimit is the wall time that answers have after the last arrival: a long one takes some 5 s.
	drainLimit    = 20 * time.Second
	progressEvery = 5 * time.Second
)

// work is what a replay sends: arrivals in an open loop, and jobs that clients, if any, keep under way until the last
// of those comes.
type work struct {
	arrivals []load.Arrival
	clients  int
	job      func(i int) load.Arrival
	firsts   time.Duration // not 0: it ends when all answers have begun, that long after the last arrival at most; no clients
}

// outcome is one replay's figures.
type outcome struct {
	results []load.Result // of the arrivals
	jobs    []load.Result // with context.Canceled: cut when the last of the arrivals came
	hits    float64       // share of prompt tokens found in the replicas' caches
	skew    float64       // most over mean of the tokens that a replica computed and generated
	most    float64       // those tokens of the busiest replica
	inside  time.Duration // model time: the mean time to first token, by the replicas' own counters
	cpu     cpu
	wall    time.Duration
}

// replay sends the work to url after a cold start of the replicas.
func (s *stack) replay(name, url string, w work) (outcome, error) {
	for _, r := range s.replicas {
		if err := post("http://" + r + "/restart"); err != nil {
			return outcome{}, err
		}
	}
	length := time.Duration(float64(w.arrivals[len(w.arrivals)-1].At) / s.opts.speed)
	limit := cmp.Or(w.firsts, drainLimit)
	ctx, cancel := context.WithTimeoutCause(s.ctx, length+limit, fmt.Errorf("answers still open %v after the last request", limit))
	defer cancel()
	g := load.New(url, s.opts.speed)
	o := outcome{}
	before, start := s.cpu(), time.Now()
	stop := make(chan struct{})
	go func() {
		for tick := time.Tick(progressEvery); ; {
			select {
			case <-tick:
				sent, done, failed := g.Progress()
				s.progress("%-12s %2.0f of %2.0f s: %d sent, %d answered, %d failed or cut at the end", name+":",
					min(time.Since(start), length).Seconds(), length.Seconds(), sent, done-failed, failed)
			case <-stop:
				return
			}
		}
	}()
	o.run(ctx, g, w, length)
	close(stop)
	o.wall, o.cpu = time.Since(start), s.cpu().since(before)
	if s.ctx.Err() != nil {
		return o, context.Cause(s.ctx)
	}
	return o, o.count(s.replicas, s.opts.speed)
}

// run is the open loop, and the closed one beside it for length.
func (o *outcome) run(ctx context.Context, g *load.Generator, w work, length time.Duration) {
	loop, leave := context.WithCancel(ctx)
	defer leave()
	defer time.AfterFunc(length, leave).Stop()
	var beside sync.WaitGroup
	beside.Go(func() { o.jobs = g.Loop(loop, w.clients, w.job) })
	if w.firsts > 0 {
		var cut context.CancelFunc
		ctx, cut = context.WithCancel(ctx)
		defer cut()
		beside.Go(func() { cutAfterFirsts(ctx, cut, g, len(w.arrivals)) })
	}
	o.results = g.Run(ctx, w.arrivals)
	beside.Wait()
}

// cutAfterFirsts cuts the answers when all of them have begun or failed. It returns then, or when ctx ends.
func cutAfterFirsts(ctx context.Context, cut func(), g *load.Generator, requests int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for g.Settled() < requests {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	cut()
}

// count reads the replicas' own counters.
func (o *outcome) count(replicas []string, speed float64) error {
	var hits, queries, work, waits, firsts float64
	for _, r := range replicas {
		m, err := metrics("http://" + r + "/metrics")
		if err != nil {
			return err
		}
		hits += m.sum("vllm:prefix_cache_hits_total")
		queries += m.sum("vllm:prefix_cache_queries_total")
		waits += m.sum("vllm:time_to_first_token_seconds_sum") // of wall time
		firsts += m.sum("vllm:time_to_first_token_seconds_count")
		tokens := m.sum("vllm:prompt_tokens_by_source_total", `source="local_compute"`) + m.sum("vllm:generation_tokens_total")
		o.most = max(o.most, tokens)
		work += tokens
	}
	if queries == 0 {
		return fmt.Errorf("the replicas have counted no prompt")
	}
	o.inside = time.Duration(waits / max(firsts, 1) * speed * float64(time.Second))
	o.hits, o.skew = hits/queries, o.most*float64(len(replicas))/work
	return nil
}

// countLimit bounds the wait for weir's counters: a request counts when Envoy has ended its stream, which may
// be after the client has the whole answer.
const countLimit = 3 * time.Second

// served is how many of n requests went to the replica that weir picked, the second choice included, by
// weir's own counters.
func (s *stack) served(n int) (float64, error) {
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		m, err := metrics("http://" + s.weirAdmin + "/metrics")
		if err != nil {
			return 0, err
		}
		if m.sum("weir_served_total", `pool="replicas"`) >= float64(n) || time.Since(start) > countLimit {
			return m.sum("weir_served_total", `pool="replicas"`, `match="first"`) +
				m.sum("weir_served_total", `pool="replicas"`, `match="second"`), nil
		}
	}
}

// series are samples of a Prometheus text page, by name and labels as they stand there.
type series map[string]float64

// sum adds up the samples of that name whose labels hold all the texts.
func (m series) sum(name string, labels ...string) (sum float64) {
next:
	for key, v := range m {
		if n, _, _ := strings.Cut(key, "{"); n != name {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(key, l) {
				continue next
			}
		}
		sum += v
	}
	return sum
}

func metrics(url string) (series, error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	m := series{}
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || line[0] == '#' {
			continue
		}
		if v, err := strconv.ParseFloat(line[i+1:], 64); err == nil {
			m[line[:i]] = v
		}
	}
	return m, nil
}

func post(url string) error {
	resp, err := http.Post(url, "", nil)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s: %s", url, resp.Status)
	}
	return nil
}
