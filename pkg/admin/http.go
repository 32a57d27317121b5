package admin

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const index = `weir
/metrics     Prometheus metrics
/healthz     200 while the process serves
/readyz      200 while weir takes requests; 503 with the reasons before that and while it drains
/debug/pool  live state of each pool and replica, JSON
/debug/gate  who waits, by class, and what the next of them wait for, JSON
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

func (a *Admin) readyz(w http.ResponseWriter, _ *http.Request) {
	if why := a.unready(); len(why) > 0 {
		text(w, http.StatusServiceUnavailable, strings.Join(why, "\n")+"\n")
		return
	}
	text(w, http.StatusOK, "ready\n")
}

// unready lists what keeps weir from being ready.
func (a *Admin) unready() (why []string) {
	if !a.ready.Load() {
		why = append(why, "the ext_proc server does not take requests: it starts or drains")
	}
	if len(a.routers) == 0 {
		why = append(why, "there is no pool")
	}
	for _, s := range a.stats() {
		if len(s.Replicas) == 0 {
			why = append(why, "pool "+s.Pool+" has no replica")
		}
	}
	return why
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
