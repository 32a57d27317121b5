package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/lab/replica"
)

// startLimit bounds the wait for weir, and for Envoy's first health check of it, on a busy machine.
const startLimit = 15 * time.Second

// stack is everything that runs for a demo, a tail or a comparison with the simulation: the replicas in this process, weir and Envoy as its children,
// all with the run directory .run/NAME-PID, which goes when they stop.
type stack struct {
	opts      options
	dir       string
	ctx       context.Context // ends with the caller's, or with the first process that ends by itself
	fail      context.CancelCauseFunc
	undo      []func() // in reverse order
	replicas  []string // ip:port
	serving   sync.WaitGroup
	weir      *child
	weirAdmin string // ip:port
	envoy     *envoy.Proc
	version   string // of Envoy
	front     string // URL through weir
	plain     string // URL of the round-robin listener
}

// start brings everything up. When it fails nothing is left.
func start(ctx context.Context, o options) (*stack, error) {
	s := &stack{opts: o, dir: filepath.Join(".run", fmt.Sprintf("%s-%d", o.name, os.Getpid()))}
	s.ctx, s.fail = context.WithCancelCause(ctx)
	for _, up := range []func() error{s.findEnvoy, s.makeDir, s.startReplicas, s.startProxies} {
		if err := up(); err != nil {
			s.stop()
			return nil, err
		}
	}
	return s, nil
}

// stop ends what was started, last first. It returns when every process has ended.
func (s *stack) stop() {
	s.fail(errors.New("stopped"))
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
	s.undo = nil
}

func (s *stack) findEnvoy() (err error) {
	if s.opts.envoy == "" {
		s.progress("looking for an Envoy")
		if s.opts.envoy, err = envoy.Find(""); err != nil {
			return err
		}
	}
	if s.opts.envoy, err = filepath.Abs(s.opts.envoy); err != nil { // it starts in the run directory
		return err
	}
	s.version, err = envoy.Version(s.opts.envoy)
	return err
}

func (s *stack) makeDir() error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	s.undo = append(s.undo, func() {
		os.RemoveAll(s.dir)
		os.Remove(filepath.Dir(s.dir)) // only if no other run is in it
	})
	logs, err := os.Create(filepath.Join(s.dir, "replicas.log"))
	if err != nil {
		return err
	}
	log.SetOutput(logs)
	s.undo = append(s.undo, func() { log.SetOutput(os.Stderr); logs.Close() })
	return nil
}

func (s *stack) startReplicas() error {
	n := cmp.Or(s.opts.replicas, demoReplicas)
	s.progress("starting %d replicas", n)
	ctx, stop := context.WithCancel(context.WithoutCancel(s.ctx)) // they outlive the proxies in front of them
	s.undo = append(s.undo, func() { stop(); s.serving.Wait() })
	for i := range n {
		r, err := replica.New(replica.Config{
			Name: fmt.Sprintf("replica-%d", i+1), Model: demoModel, Profile: s.opts.profile(), Speed: s.opts.speed,
		})
		if err != nil {
			return err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.replicas = append(s.replicas, l.Addr().String())
		s.serving.Go(func() {
			if err := r.Serve(ctx, l); err != nil {
				s.fail(fmt.Errorf("replica %d: %w", i+1, err))
			}
		})
	}
	return nil
}

// startProxies starts weir and then Envoy with one and the same file, and waits until Envoy sees weir.
func (s *stack) startProxies() error {
	ports, err := envoy.FreePorts(4)
	if err != nil {
		return err
	}
	s.front, s.plain = fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	s.weirAdmin = fmt.Sprintf("127.0.0.1:%d", ports[3])
	config, err := envoy.Bootstrap(envoy.Params{
		Front: ports[0], Plain: ports[1], Admin: ports[2], WeirAdmin: ports[3], Replicas: s.replicas, Mode: s.opts.mode,
	})
	if err == nil {
		config, err = envoy.Replace(config, "replica: {profile: 8B}", s.policy())
	}
	if err == nil {
		config, err = s.changed(config)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "envoy.yaml"), config, 0o644)
	}
	if err != nil {
		return err
	}
	if err := s.startWeir(); err != nil {
		return err
	}
	s.progress("starting Envoy %s", s.version)
	// Not bound to s.ctx: weir's end must not take the log of an Envoy with it that is yet to be read.
	if s.envoy, err = envoy.Start(context.WithoutCancel(s.ctx), envoy.Options{Path: s.opts.envoy, Config: config, Dir: s.dir}); err != nil {
		return err
	}
	s.undo = append(s.undo, s.envoy.Stop)
	go s.watch("Envoy", s.envoy.Done(), func() string { return s.envoy.Log() })
	return s.await("Envoy to see weir", func() bool {
		stats, err := s.envoy.Stats("cluster.weir.membership_")
		return err == nil && stats["cluster.weir.membership_healthy"] == 1
	})
}

// changed is the file with the lines of the policy that the options change, and the balancer.
func (s *stack) changed(config []byte) ([]byte, error) {
	lines := s.opts.lines
	if s.opts.queue != "" {
		lines = append(slices.Clone(lines), "queue="+s.opts.queue)
	}
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "=")
		old := regexp.MustCompile(`(?m)^      ` + regexp.QuoteMeta(key) + `: .*$`).Find(config)
		if old == nil {
			return nil, fmt.Errorf("the policy has no line %q", key)
		}
		var err error
		if config, err = envoy.Replace(config, string(old), "      "+key+": "+value); err != nil {
			return nil, err
		}
	}
	if s.opts.balancer == "" {
		return config, nil
	}
	return envoy.Replace(config, "lb_policy: ROUND_ROBIN", "lb_policy: "+s.opts.balancer)
}

// defaultQueue is the line of envoy/bootstrap.yaml.
const defaultQueue = "priority_classes + deadlines"

// policy is the replicas' step model in wall time, as the policy block takes it.
func (s *stack) policy() string {
	p := s.opts.profile()
	wall := func(d time.Duration) time.Duration { return time.Duration(float64(d)/s.opts.speed + 0.5) }
	return fmt.Sprintf("replica: {profile: %s, step: %v, per_sequence: %v, per_context_token: %v, per_prompt_token: %v, kv_tokens: %d}",
		p.Name, wall(p.Base), wall(p.PerSeq), wall(p.PerContext), wall(p.PerPrefill), p.KVTokens)
}

func (s *stack) startWeir() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	path := filepath.Join(filepath.Dir(self), "weir")
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%w: run make build first", err)
	}
	s.progress("starting weir")
	if s.weir, err = startChild(s.dir, "weir.log", path, "serve", "--bootstrap", "envoy.yaml"); err != nil {
		return err
	}
	s.undo = append(s.undo, s.weir.stop)
	go s.watch("weir", s.weir.done, s.weir.log)
	return s.await("weir to be ready", func() bool {
		resp, err := http.Get("http://" + s.weirAdmin + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// watch fails the stack when a process ends before stop does it.
func (s *stack) watch(name string, done <-chan struct{}, logs func() string) {
	select {
	case <-done:
		if s.ctx.Err() == nil {
			s.fail(fmt.Errorf("%s ended by itself; the end of its log:\n%s", name, tail(logs())))
		}
	case <-s.ctx.Done():
	}
}

// await polls until it is so. It fails after startLimit and when the stack fails.
func (s *stack) await(what string, so func() bool) error {
	limit := time.After(startLimit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		case <-limit:
			return fmt.Errorf("waited %v for %s; the end of weir's log:\n%s", startLimit, what, tail(s.weir.log()))
		case <-tick.C:
		}
	}
	return nil
}
