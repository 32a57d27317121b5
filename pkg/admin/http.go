package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirproxy/weir/pkg/route"
)

const index = `weir
/metrics     Prometheus metrics
/healthz     200 while the process serves
/readyz      200 while weir takes requests and each pool has a usable replica, else 503 with the reasons; usable replicas of all, by pool
/debug/pool  live state of each pool and replica, JSON
/debug/gate  who waits, by class, and what the next of them wait for, JSON
/debug/knee  load, knee and rates of each replica, waits by Erlang C beside the measured, replicas needed, JSON
/debug/estimates  what weir has learned of each pool and replica, and how sure it is, JSON
`

// maxScrapes bounds the metrics pages that are made at once.
const maxScrapes = 4

// handler serves GET and HEAD; the mux answers other methods with 405.
func (a *Admin) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(a.log.Handler(), slog.LevelDebug), // one line for each series to a client that left
		ErrorHandling:       promhttp.ContinueOnError,                            // one bad series does not blind the operator
		MaxRequestsInFlight: maxScrapes,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", a.readyz)
	mux.HandleFunc("GET /debug/pool", func(w http.ResponseWriter, _ *http.Request) { a.json(w, a.stats()) })
	mux.HandleFunc("GET /debug/gate", func(w http.ResponseWriter, _ *http.Request) { a.json(w, a.gates(heads)) })
	mux.HandleFunc("GET /debug/knee", func(w http.ResponseWriter, _ *http.Request) { a.json(w, a.knees()) })
	mux.HandleFunc("GET /debug/estimates", func(w http.ResponseWriter, _ *http.Request) { a.json(w, a.estimates()) })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, index) })
	return mux
}

// text answers with a plain text. A client that is gone while it is written needs no answer.
func text(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
}

// readyz is for people, scripts and alerts. Envoy asks weir's gRPC health instead, which knows nothing of replicas: a weir that
// is taken out for what they do would let all requests past the gate, to the same replicas.
func (a *Admin) readyz(w http.ResponseWriter, _ *http.Request) {
	pools := a.stats()
	code, lines := http.StatusServiceUnavailable, a.unready(pools)
	if len(lines) == 0 {
		code, lines = http.StatusOK, []string{"ready"}
	}
	for _, s := range pools {
		usable, fresh := usable(s)
		lines = append(lines, fmt.Sprintf("pool %s: %d of %d replicas usable, %d with fresh metrics", s.Pool, usable, len(s.Replicas), fresh))
	}
	text(w, code, strings.Join(lines, "\n")+"\n")
}

// unready lists what keeps weir from being ready.
func (a *Admin) unready(pools []route.Stats) (why []string) {
	if !a.ready.Load() {
		why = append(why, "the ext_proc server does not take requests: it starts or drains")
	}
	if len(pools) == 0 {
		why = append(why, "there is no pool")
	}
	for _, s := range pools {
		if n, _ := usable(s); len(s.Replicas) == 0 {
			why = append(why, "pool "+s.Pool+" has no replica")
		} else if n == 0 {
			why = append(why, "pool "+s.Pool+" has no usable replica")
		}
	}
	return why
}

// usable counts a pool's replicas that do not fail, as far as weir knows, and those whose metrics are believed.
func usable(s route.Stats) (usable, fresh int) {
	for _, r := range s.Replicas {
		if !r.Failing {
			usable++
		}
		if r.Scrape != nil && !r.Scrape.Stale {
			fresh++
		}
	}
	return usable, fresh
}

// heads is the requests of each class that /debug/gate shows.
const heads = 8

// json answers with an array, one element per pool.
func (a *Admin) json(w http.ResponseWriter, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		a.log.Error("a debug page cannot be written", "err", err)
		text(w, http.StatusInternalServerError, "the state cannot be written as JSON: see the log\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(body, '\n'))
}
