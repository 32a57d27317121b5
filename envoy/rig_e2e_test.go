package envoy_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	check "github.com/weirproxy/weir/pkg/bootstrap"
	"github.com/weirproxy/weir/pkg/extproc"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
)

// rig is a real Envoy, backends in this process, and weir's edge and spine in this process too.
type rig struct {
	*envoy.Proc
	front    string // URL of the listener through weir
	plain    string // URL of the one past it
	backends []*backend
	addrs    []string   // of the replicas: the backends', unless the test has others
	mode     envoy.Mode // never empty
	admin    string     // URL of weir's admin listener, where weir runs as a process
	*edge
}

// rigOptions are what tests of the rig differ in.
type rigOptions struct {
	mode  envoy.Mode // empty: Buffered
	addrs []string   // the replicas; none: four backends
	edits []string   // of the bootstrap, old and new text by turns
}

// longTimeouts is an Envoy that waits for weir on a busy machine; shortTimeouts is one that still notices when weir is gone.
var (
	longTimeouts  = []string{" message_timeout: 1s  ", " message_timeout: 20s ", "{timeout: 0.5s, interval", "{timeout: 20s, interval", "{interval: 2s, timeout: 3s}", "{interval: 20s, timeout: 20s}"}
	shortTimeouts = []string{" message_timeout: 1s  ", " message_timeout: 3s  "}
)

// startRig starts all but weir. A failed test prints Envoy's log.
func startRig(t *testing.T, path string, o rigOptions) *rig {
	t.Helper()
	r := &rig{addrs: o.addrs, mode: cmp.Or(o.mode, envoy.Buffered)}
	if len(r.addrs) == 0 {
		for range 4 {
			b := startBackend(t)
			r.backends = append(r.backends, b)
			r.addrs = append(r.addrs, b.addr())
		}
	}
	dir, err := os.MkdirTemp("", "weir") // t.TempDir is too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := params(t)
	p.Replicas, p.Mode = r.addrs, r.mode
	r.admin = fmt.Sprintf("http://127.0.0.1:%d", p.WeirAdmin)
	r.front, r.plain = fmt.Sprintf("http://127.0.0.1:%d", p.Front), fmt.Sprintf("http://127.0.0.1:%d", p.Plain)
	r.Proc = start(t, envoy.Options{Path: path, Config: bootstrap(t, p, o.edits...), Dir: dir})
	return r
}

func (r *rig) socket() string { return filepath.Join(r.Dir, "weir.sock") }

// edge is one run of weir in this process.
type edge struct {
	*extproc.Server
	router *route.Router
	stop   func() // in order
	sever  func() // cuts Envoy's connections, as weir's death does, and takes no more
	log    *logged

	mu    sync.Mutex
	ended []ended
}

// conns is a listener that can be severed.
type conns struct {
	net.Listener
	mu   sync.Mutex
	all  []net.Conn
	dead bool
}

func (c *conns) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		if c.all = append(c.all, conn); c.dead {
			conn.Close()
		}
		c.mu.Unlock()
	}
	return conn, err
}

func (c *conns) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
	for _, conn := range c.all {
		conn.Close()
	}
}

// logged is what weir logs.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// ended is a request that ended, and how long after its arrival.
type ended struct {
	*route.Decision
	after time.Duration
}

// serve starts weir over the rig's replicas, in the place of the one that ran, and waits until Envoy sends requests to
// it. seats bounds the requests per replica; 0: the default.
func (r *rig) serve(t *testing.T, seats int) {
	t.Helper()
	r.listen(t, seats)
	r.awaitPick(t)
}

// listen is serve without the wait.
func (r *rig) listen(t *testing.T, seats int) {
	t.Helper()
	var timers []extproc.Timer
	if b, err := check.Load(check.Files{Bootstrap: filepath.Join(r.Dir, "envoy.yaml")}); err == nil { // some tests have a file that weir refuses
		timers = b.Timers
	}
	r.edge = newEdge(t, timers, r.addrs, seats)
	l, err := net.Listen("unix", r.socket())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	c := &conns{Listener: l}
	r.edge.sever = c.sever
	go func(s *extproc.Server) { done <- s.Serve(ctx, c) }(r.edge.Server)
	r.edge.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(r.edge.stop)
}

// newEdge returns an edge that does not serve yet.
func newEdge(t *testing.T, timers []extproc.Timer, addrs []string, seats int) *edge {
	t.Helper()
	cfg, ok := pool.Default(pool.DefaultProfile)
	if !ok {
		t.Fatal("no default profile")
	}
	if seats > 0 {
		cfg.Seats = seats
	}
	e := &edge{router: route.New(route.Default(), pool.New("replicas", addrs, cfg)), log: &logged{}}
	policy := extproc.Default()
	policy.ClassFrom = "metadata:jwt:claims.class"
	e.Server = extproc.NewServer(policy, timers, map[string]*route.Router{"replicas": e.router}, e.record, slog.New(slog.NewTextHandler(e.log, nil)))
	return e
}

func (e *edge) record(d *route.Decision) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = append(e.ended, ended{d, time.Since(d.Arrived)})
}

// take returns the requests that ended since the last call.
func (e *edge) take() []ended {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.ended
	e.ended = nil
	return all
}

// awaitPick sends requests until one was picked and served, and forgets them.
func (r *rig) awaitPick(t *testing.T) {
	t.Helper()
	eventually(t, "a pick is served", func() bool {
		time.Sleep(50 * time.Millisecond)
		r.get(t, "/v1/models")
		for _, e := range r.edge.take() {
			if e.Served == route.First {
				return true
			}
		}
		return false
	})
	r.settle(t)
}

func (r *rig) get(t *testing.T, path string) {
	t.Helper()
	req := newRequest(t, "GET", r.front+path, "")
	req.Header.Del("content-type") // none is recorded
	exchange(t, http.DefaultClient, req)
}
