package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// Config is one simulated server. Model, Profile and Speed are needed.
type Config struct {
	Name          string // goes out as header x-replica
	Model         string // the one model that it serves
	Profile       step.Profile
	Speed         float64 // model seconds per wall second, above 0
	MaxModelLen   int     // tokens of prompt and answer; 0, or more than the KV memory holds, means all of it
	DefaultOutput int     // answer tokens of a request without max_tokens; 0 means 128
	CapOutput     bool    // no answer is longer than DefaultOutput: it ends with "stop" before max_tokens
	Fault         Fault   // from the start
}

func (c *Config) complete() error {
	kv := c.Profile.KVTokens / step.BlockTokens * step.BlockTokens
	if c.MaxModelLen == 0 || c.MaxModelLen > kv {
		c.MaxModelLen = kv
	}
	if c.DefaultOutput == 0 {
		c.DefaultOutput = 128
	}
	var errs []error
	if c.Model == "" {
		errs = append(errs, errors.New("replica: no model name"))
	}
	if !(c.Speed > 0) {
		errs = append(errs, fmt.Errorf("replica: speed %v is not above 0", c.Speed))
	}
	if c.DefaultOutput < 0 || c.MaxModelLen < 0 {
		errs = append(errs, errors.New("replica: a token limit is negative"))
	}
	return errors.Join(append(errs, c.Fault.validate())...)
}

// Server is one simulated vLLM server. Make it with New, then call Serve once.
type Server struct {
	cfg      Config
	engine   *engine
	fault    atomic.Pointer[Fault]
	requests atomic.Int64 // that a share of faults counts
	last     atomic.Pointer[lastRequest]
	created  int64
}

// New checks the configuration and makes an idle server with an empty cache.
func New(cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, created: time.Now().Unix()}
	var err error
	if s.engine, err = newEngine(&s.cfg); err != nil {
		return nil, err
	}
	s.fault.Store(&s.cfg.Fault)
	return s, nil
}

// stopGrace is how long running answers may go on once the server is told to stop.
const stopGrace = time.Second

// Serve answers on l until ctx ends, then gives running answers a second and cuts the rest. It returns when
// the engine has ended: nil after a stop by ctx, else why the listener failed.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	outlives := context.WithoutCancel(ctx)
	engineCtx, stopEngine := context.WithCancel(outlives)
	go s.engine.run(engineCtx)
	s.engine.setFault(s.cfg.Fault)
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	slog.Info("replica serves", "name", s.cfg.Name, "address", l.Addr().String(), "profile", s.cfg.Profile.Name,
		"model", s.cfg.Model, "kv_tokens", s.cfg.Profile.KVTokens, "speed", s.cfg.Speed)
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		grace, cancel := context.WithTimeout(outlives, stopGrace)
		srv.Shutdown(grace) // its error says that the grace is over, which Close then ends
		cancel()
	}
	srv.Close()
	stopEngine()
	<-s.engine.stopped
	slog.Info("replica stopped", "name", s.cfg.Name)
	return err
}

// ServeHTTP routes by the literal path: a mux would clean or redirect what a test sends on purpose.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("x-replica", s.cfg.Name)
	switch r.URL.Path {
	case "/fault":
		s.serveFault(w, r)
		return
	case "/restart":
		s.serveRestart(w, r)
		return
	case "/debug/last":
		s.serveLast(w)
		return
	case "/metrics":
		s.serveMetrics(w, r)
		return
	}
	if s.struck(w, r) {
		return
	}
	switch r.URL.Path {
	case "/health":
		w.WriteHeader(http.StatusOK)
	case "/v1/models":
		s.serveModels(w)
	case "/v1/chat/completions":
		s.generate(w, r, chat)
	case "/v1/completions":
		s.generate(w, r, completions)
	case "/v1/messages":
		s.generate(w, r, messages)
	case "/v1/messages/count_tokens":
		s.generate(w, r, countTokens)
	case "/v1/responses":
		s.generate(w, r, responses)
	case "/v1/embeddings":
		s.generate(w, r, embeddings)
	default:
		s.serveEcho(w, r)
	}
}
