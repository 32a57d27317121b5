package scrape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

const page = "vllm:num_requests_running 2\nvllm:num_requests_waiting 1\nvllm:kv_cache_usage_perc 0.5\nvllm:prompt_tokens_total 5\nvllm:generation_tokens_total 5\n"

// lines collects log lines.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSuffix(l.buf.String(), "\n"), "\n")[:bytes.Count(l.buf.Bytes(), []byte("\n"))]
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// answer is a replica without a network, for tests in virtual time.
type answer func(*http.Request) (*http.Response, error)

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func ok(body string) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// start runs a scraper of n targets against a, and returns how to stop it and wait.
func start(t *testing.T, n int, log *slog.Logger, a answer, observe func(time.Time, pool.Sample)) (*Scraper, func()) {
	t.Helper()
	var targets []Target
	for i := range n {
		targets = append(targets, Target{Pool: "llm", Endpoint: fmt.Sprintf("10.0.0.%d:8000", i), Observe: observe})
	}
	s := New(Interval, targets, log)
	s.client.Transport = a
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	return s, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
	}
}

func TestScrapesOncePerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen atomic.Int64
		begin := time.Now()
		first := map[string]time.Duration{}
		var mu sync.Mutex
		a := func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			if _, ok := first[r.URL.Host]; !ok {
				first[r.URL.Host] = time.Since(begin)
			}
			mu.Unlock()
			time.Sleep(300 * time.Millisecond) // takes nothing off the pace
			return ok(page)
		}
		s, stop := start(t, 8, slog.New(slog.DiscardHandler), a, func(now time.Time, m pool.Sample) {
			if !m.At.Equal(now) || !now.Equal(time.Now()) || !m.HasKV || m.KV != 0.5 {
				t.Errorf("Observe(%v, %+v)", now, m)
			}
			seen.Add(1)
		})
		time.Sleep(60*time.Second + 500*time.Millisecond)
		stop()
		if n := seen.Load(); n < 8*59 || n > 8*61 {
			t.Errorf("%d samples of 8 replicas in 60 s", n)
		}
		phases := map[time.Duration]bool{}
		for host, d := range first {
			if d >= time.Second {
				t.Errorf("%s: first scrape after %v", host, d)
			}
			phases[d.Truncate(time.Millisecond)] = true
		}
		if len(phases) < 4 {
			t.Errorf("8 replicas start at %d phases", len(phases))
		}
		for _, st := range s.Stats() {
			if st.Pool != "llm" || st.Scrapes < 59 || st.Failures != 0 {
				t.Errorf("Stats = %+v", st)
			}
		}
	})
}

// TestFailingReplica goes through failing, backoff and recovery: two log lines in all, however long it takes.
func TestFailingReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		var mu sync.Mutex
		var tries []time.Time
		a := func(*http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			tries = append(tries, time.Now())
			if down.Load() {
				return nil, errors.New("connection refused")
			}
			return ok(page)
		}
		var log lines
		var seen atomic.Int64
		s, stop := start(t, 1, log.logger(), a, func(time.Time, pool.Sample) { seen.Add(1) })
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := len(log.all()); n != 0 {
			t.Errorf("a healthy replica logs %d lines", n)
		}
		down.Store(true)
		before := seen.Load()
		time.Sleep(60 * time.Second)
		synctest.Wait()
		mu.Lock()
		at := slices.Clone(tries)
		mu.Unlock()
		var gaps []int
		for i := int(before); i < len(at); i++ {
			gaps = append(gaps, int(at[i].Sub(at[i-1]).Seconds()+0.5))
		}
		if got, want := fmt.Sprint(gaps[:7]), "[1 1 1 2 4 4 4]"; got != want {
			t.Errorf("seconds between tries: %v, want %v", got, want)
		}
		if l := log.all(); len(l) != 1 || !strings.Contains(l[0], "connection refused") || !strings.Contains(l[0], "10.0.0.0:8000") {
			t.Errorf("log of a failing replica: %q", l)
		}
		down.Store(false)
		time.Sleep(maxPause*time.Second + time.Millisecond)
		synctest.Wait()
		if seen.Load() == before {
			t.Error("not read again within maxPause intervals")
		}
		time.Sleep(10 * time.Second)
		stop()
		if l := log.all(); len(l) != 2 || !strings.Contains(l[1], "again") {
			t.Errorf("log after recovery: %q", l)
		}
		if st := s.Stats()[0]; st.Failures != uint64(len(gaps)) || st.Scrapes != uint64(len(tries)) {
			t.Errorf("Stats = %+v of %d tries, %d failed", st, len(tries), len(gaps))
		}
	})
}

// TestLostScrape: a single one changes nothing, in pace or log.
func TestLostScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n, seen int
		a := func(*http.Request) (*http.Response, error) {
			if n++; n%3 == 0 {
				return nil, io.ErrUnexpectedEOF
			}
			return ok(page)
		}
		var log lines
		_, stop := start(t, 1, log.logger(), a, func(time.Time, pool.Sample) { seen++ })
		time.Sleep(31 * time.Second)
		stop()
		if n < 30 || seen < 20 || len(log.all()) != 0 {
			t.Errorf("%d tries, %d samples, log %q", n, seen, log.all())
		}
	})
}

// TestMissingSeriesWarnsOnce: unknown is said aloud, once per replica and series
// (gateway-api-inference-extension PR#1905).
func TestMissingSeriesWarnsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		a := func(r *http.Request) (*http.Response, error) {
			if n.Add(1) > 40 { // both replicas: something else is gone as well
				return ok("vllm:num_requests_running 2\n")
			}
			return ok(strings.ReplaceAll(page, "vllm:kv_cache_usage_perc", "vllm:unknown"))
		}
		var log lines
		_, stop := start(t, 2, log.logger(), a, func(time.Time, pool.Sample) {})
		time.Sleep(18 * time.Second)
		synctest.Wait()
		l := log.all()
		if len(l) != 2 || !strings.Contains(l[0], "series=[vllm:kv_cache_usage_perc|vllm:gpu_cache_usage_perc|sglang:token_usage]") {
			t.Errorf("log of two replicas without KV: %q", l)
		}
		time.Sleep(60 * time.Second)
		stop()
		if l = log.all(); len(l) != 4 || strings.Contains(l[3], "kv_cache") || !strings.Contains(l[3], "num_requests_waiting") {
			t.Errorf("log when two more are gone: %q", l)
		}
	})
}

// TestRunEndsWithItsContext: in a synctest bubble a goroutine left behind fails the test.
func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := func(r *http.Request) (*http.Response, error) { // hangs
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		s, stop := start(t, 5, slog.New(slog.DiscardHandler), a, func(time.Time, pool.Sample) { t.Error("observed") })
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		before := s.Stats()
		begin := time.Now()
		stop()
		if d := time.Since(begin); d != 0 {
			t.Errorf("Run took %v to end", d)
		}
		for i, st := range s.Stats() {
			if st != before[i] || st.Failures != st.Scrapes || st.Failures < 2 {
				t.Errorf("Stats = %+v, before the stop %+v", st, before[i])
			}
		}
	})
}

// TestHangingReplica: each try ends at 0.9 of the interval, so the pace holds.
func TestHangingReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took []time.Duration
		a := func(r *http.Request) (*http.Response, error) {
			begin := time.Now()
			<-r.Context().Done()
			took = append(took, time.Since(begin))
			return nil, r.Context().Err()
		}
		_, stop := start(t, 1, slog.New(slog.DiscardHandler), a, func(time.Time, pool.Sample) {})
		time.Sleep(3 * time.Second)
		stop()
		if len(took) < 2 || took[0] != 900*time.Millisecond {
			t.Errorf("tries took %v", took)
		}
	})
}
