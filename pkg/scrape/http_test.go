package scrape

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// TestOverHTTP scrapes a real server: gzip, one kept connection, no redirect followed, what is asked for.
func TestOverHTTP(t *testing.T) {
	var conns, redirected atomic.Int64
	var asked sync.Map
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		asked.Store("accept", r.Header.Get("Accept"))
		w.Header().Set("Content-Type", text)
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("Accept-Encoding is %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		_, _ = io.WriteString(z, page)
	})
	srv := httptest.NewUnstartedServer(mux)
	srv.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			redirected.Add(1)
		}
		http.Redirect(w, r, srv.URL+"/metrics", http.StatusFound)
	}))
	defer elsewhere.Close()

	got := make(chan pool.Sample, 1000)
	s := New(20*time.Millisecond, []Target{
		{Pool: "llm", Endpoint: strings.TrimPrefix(srv.URL, "http://"), Observe: func(_ time.Time, m pool.Sample) { got <- m }},
		{Pool: "llm", Endpoint: strings.TrimPrefix(elsewhere.URL, "http://"), Observe: func(time.Time, pool.Sample) { t.Error("followed a redirect") }},
	}, slog.New(slog.DiscardHandler))
	s.client.Timeout = 10 * time.Second // a slow machine is not what is tested
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	for range 5 {
		if m := <-got; m.Tokens != 10 || !m.HasTokens {
			t.Errorf("sample %+v", m)
		}
	}
	for s.Stats()[1].Failures == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("5 scrapes took %d connections", n)
	}
	if v, _ := asked.Load("accept"); v != "text/plain;version=0.0.4" || redirected.Load() != 0 {
		t.Errorf("Accept was %v", v)
	}
}

func TestStatusIsNoPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := func(*http.Request) (*http.Response, error) {
			r, err := ok(page)
			r.StatusCode = http.StatusServiceUnavailable
			return r, err
		}
		s, stop := start(t, 1, slog.New(slog.DiscardHandler), a, func(time.Time, pool.Sample) { t.Error("observed a 503") })
		time.Sleep(2 * time.Second)
		stop()
		if st := s.Stats()[0]; st.Failures == 0 {
			t.Errorf("Stats = %+v", st)
		}
	})
}

// TestRefused: a refused connection is told at once and each time, any other failure is not.
func TestRefused(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"refused":           {refused, true},
		"refused, wrapped":  {fmt.Errorf("no page: %w", refused), true},
		"by that name only": {fmt.Errorf("connection refused"), false},
		"reset":             {&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, false},
		"cut":               {io.ErrUnexpectedEOF, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told, tries int
				s := New(Interval, []Target{{
					Pool: "llm", Endpoint: "10.0.0.1:8000", Observe: func(time.Time, pool.Sample) { t.Error("observed") },
					Refused: func(now time.Time) {
						if told++; !now.Equal(time.Now()) {
							t.Errorf("told at %v of %v", time.Now(), now)
						}
					},
				}}, slog.New(slog.DiscardHandler))
				s.client.Transport = answer(func(*http.Request) (*http.Response, error) { tries++; return nil, c.err })
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				if err := s.Run(ctx); err != nil {
					t.Errorf("Run = %v", err)
				}
				if want := map[bool]int{true: tries}[c.want]; tries < 5 || told != want {
					t.Errorf("told %d times of %d tries, want %d", told, tries, want)
				}
			})
		})
	}
}

// TestRefusedByTheHost scrapes an address where nobody listens.
func TestRefusedByTheHost(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	told := make(chan time.Time, 1000)
	s := New(20*time.Millisecond, []Target{{
		Pool: "llm", Endpoint: srv.Listener.Addr().String(), Refused: func(now time.Time) { told <- now },
	}}, slog.New(slog.DiscardHandler))
	s.client.Timeout = 10 * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	<-told
	<-told
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
}
