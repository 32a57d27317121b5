package envoy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/weirproxy/weir/envoy"
)

// pickHeader is where weir's pick travels, and what a client must not be able to set.
const pickHeader = "x-gateway-destination-endpoint"

// eachVersion runs a test with the oldest and the newest supported Envoy. Without one of them the test fails.
func eachVersion(t *testing.T, test func(t *testing.T, path string)) {
	for _, version := range []string{envoy.Oldest, envoy.Newest} {
		t.Run(version, func(t *testing.T) {
			test(t, find(t, version))
		})
	}
}

func find(t *testing.T, version string) string {
	t.Helper()
	path, err := envoy.Find(version)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// mesh is an Envoy in front of four replicas, with no weir.
type mesh struct {
	*envoy.Proc
	front, plain string // URLs of the two listeners
	replicas     []*replica
}

// replica answers each request with its body and counts.
type replica struct {
	*httptest.Server
	mu      sync.Mutex
	served  int
	sawPick int // requests that carried the pick header
}

func (r *replica) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.served++
	if req.Header.Get(pickHeader) != "" {
		r.sawPick++
	}
	r.mu.Unlock()
	io.Copy(w, req.Body)
}

func (r *replica) addr() string { return r.Listener.Addr().String() }

// startMesh starts four replicas and an Envoy with the bootstrap of the mode, after the edits (old and new text by
// turns). A failed test prints Envoy's log.
func startMesh(t *testing.T, path string, mode envoy.Mode, edits ...string) *mesh {
	t.Helper()
	m := &mesh{}
	var addrs []string
	for range 4 {
		r := &replica{}
		r.Server = httptest.NewServer(r)
		t.Cleanup(r.Close)
		m.replicas = append(m.replicas, r)
		addrs = append(addrs, r.addr())
	}
	ports := freePorts(t, 3)
	m.front, m.plain = fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	config := bootstrap(t, envoy.Params{Front: ports[0], Plain: ports[1], Admin: ports[2], Replicas: addrs, Mode: mode}, edits...)
	m.Proc = start(t, envoy.Options{Path: path, Config: config, Dir: t.TempDir()})
	return m
}

func bootstrap(t *testing.T, p envoy.Params, edits ...string) []byte {
	t.Helper()
	config, err := envoy.Bootstrap(p)
	for ; err == nil && len(edits) > 0; edits = edits[2:] {
		config, err = envoy.Replace(config, edits[0], edits[1])
	}
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func start(t *testing.T, o envoy.Options) *envoy.Proc {
	t.Helper()
	p, err := envoy.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("log of Envoy:\n%s", p.Log())
		}
	})
	return p
}

func freePorts(t *testing.T, n int) []int {
	t.Helper()
	ports, err := envoy.FreePorts(n)
	if err != nil {
		t.Fatal(err)
	}
	return ports
}

// send posts n bodies, one after the other, and wants each back with a 200.
func send(t *testing.T, n int, url, pick string) {
	t.Helper()
	for i := range n {
		body := fmt.Sprintf("request %d", i)
		req, err := http.NewRequest("POST", url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if pick != "" {
			req.Header.Set(pickHeader, pick)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || string(got) != body {
			t.Fatalf("%s: status %d, body %q, %v", url, resp.StatusCode, got, err)
		}
	}
}

// served returns how many requests each replica has answered since the last call.
func (m *mesh) served() (counts []int) {
	for _, r := range m.replicas {
		r.mu.Lock()
		counts = append(counts, r.served)
		r.served = 0
		r.mu.Unlock()
	}
	return counts
}

// sawPick returns how many requests have reached a replica with the pick header on them.
func (m *mesh) sawPick() (n int) {
	for _, r := range m.replicas {
		r.mu.Lock()
		n += r.sawPick
		r.mu.Unlock()
	}
	return n
}
