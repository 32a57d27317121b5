package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// replica is one target and its goroutine's state.
type replica struct {
	Target
	client   *http.Client
	interval time.Duration
	log      *slog.Logger

	scrapes, failures atomic.Uint64

	failed int       // scrapes that failed in a row
	warned bool      // of that
	told   time.Time // when it last was; zero: never
	lacks  []string  // series that were missing once, and logged
}

// run scrapes until ctx ends. The pace is kept from the start of one scrape to the start of the next.
func (r *replica) run(ctx context.Context) {
	timer := time.NewTimer(rand.N(r.interval))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		next := time.Now()
		s, err := r.scrape(ctx)
		if ctx.Err() != nil {
			return // a scrape cut off by the stop is no failure of the replica's
		}
		r.scrapes.Add(1)
		if err != nil {
			r.fail(err)
		} else {
			r.succeed(s)
		}
		timer.Reset(time.Until(next.Add(r.pause())))
	}
}

// scrape gets one page. Its time is bounded by the client's.
func (r *replica) scrape(ctx context.Context) (pool.Sample, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Endpoint+"/metrics", nil)
	if err != nil {
		return pool.Sample{}, err
	}
	// Text alone: Python's prometheus_client, which vLLM and SGLang use, answers in OpenMetrics whenever that is named,
	// whatever its weight, and OpenMetrics tells nothing more here. What comes as OpenMetrics all the same is read.
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	req.Header.Set("User-Agent", "weir")
	resp, err := r.client.Do(req)
	if err != nil {
		return pool.Sample{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, resp.Body, maxLine) // so that the connection is kept
		return pool.Sample{}, fmt.Errorf("status %d", resp.StatusCode)
	}
	return Parse(resp.Body, resp.Header.Get("Content-Type"))
}

// fail counts a failure. It is logged from the last on that the gauges outlive, once, and once in Quiet.
func (r *replica) fail(err error) {
	r.failures.Add(1)
	if errors.Is(err, syscall.ECONNREFUSED) {
		r.Refused(time.Now()) // the API is served there too
	}
	r.failed++
	if r.failed >= failAfter && !r.warned && (r.told.IsZero() || time.Since(r.told) >= Quiet) {
		r.warned, r.told = true, time.Now()
		r.log.Warn("replica metrics cannot be read: its gauges are unknown", "err", fmt.Sprintf("%.300s", err)) // may quote what it sent
	}
}

func (r *replica) succeed(s pool.Sample) {
	if r.warned {
		r.log.Info("replica metrics are read again", "failures", r.failed)
	}
	r.failed, r.warned = 0, false
	now := time.Now()
	s.At = now
	r.Observe(now, s)
	r.warn(s)
}

// warn logs the series that a Sample lacks, each once for as long as weir runs.
func (r *replica) warn(s pool.Sample) {
	var lacks []string
	for _, f := range []struct {
		has   bool
		names []string
	}{{s.HasRunning, running}, {s.HasWaiting, waiting}, {s.HasKV, kv}, {s.HasTokens, []string{prompts[0] + "+" + generation[0], realtime[0]}}} {
		if name := strings.Join(f.names, "|"); !f.has && !slices.Contains(r.lacks, name) {
			lacks = append(lacks, name)
		}
	}
	if lacks != nil {
		r.lacks = append(r.lacks, lacks...)
		r.log.Warn("replica metrics lack a series, or its value is out of range: taken as unknown", "series", lacks)
	}
}

// pause is the time from the start of the last scrape to the start of the next: one interval, doubled for
// each failure from failAfter on, at most maxPause intervals.
func (r *replica) pause() time.Duration {
	p := r.interval
	for n := failAfter; n <= r.failed && p < maxPause*r.interval; n++ {
		p *= 2
	}
	return p
}
