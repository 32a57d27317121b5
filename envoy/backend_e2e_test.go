package envoy_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// seen is what a backend saw of one request.
type seen struct {
	at     string // the backend
	hash   [sha256.Size]byte
	size   int64
	length int64    // Content-Length; -1: chunked
	picks  []string // the values of the pick header
	mark   string   // the value of x-mark
}

// backend is a replica that answers 200 with ok, or takes an upgrade or a CONNECT to tunnelHost. The query asks for a
// streamed answer (events=N, every=DURATION; then hold), for a status (status=N), for a refusal of chunks (length=must), or
// for a time that the answer takes, one after the other (busy=DURATION).
type backend struct {
	*httptest.Server
	busy sync.Mutex    // held by the one that is served, if it asks for a time
	hold chan struct{} // closed: the answers that wait for it (hold) end
	mu   sync.Mutex
	seen []seen
}

const (
	ok         = `{"ok": true}` + "\n"
	eventLine  = `data: {"event": %d}`
	heldEvent  = "data: {}\n\n" // an answer that waited for hold
	tunnelHost = "tunnel:80"
)

func startBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{hold: make(chan struct{})}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *backend) addr() string { return b.Listener.Addr().String() }

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/metrics" { // weir's scrapes are no requests
		http.NotFound(w, r)
		return
	}
	if r.Header.Get("upgrade") != "" || r.Host == tunnelHost {
		b.tunnel(w, r)
		return
	}
	h := sha256.New()
	n, err := io.Copy(h, r.Body)
	if err != nil {
		return // the client left
	}
	s := seen{at: b.addr(), size: n, length: r.ContentLength, picks: r.Header.Values(pickHeader), mark: r.Header.Get("x-mark")}
	h.Sum(s.hash[:0])
	b.mu.Lock()
	b.seen = append(b.seen, s)
	b.mu.Unlock()
	b.answer(w, r)
}

// tunnel sends back what it reads, until the client leaves.
func (b *backend) tunnel(w http.ResponseWriter, r *http.Request) {
	conn, from, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	head := "101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket"
	if r.Method == http.MethodConnect {
		head = "200 OK"
	}
	io.WriteString(conn, "HTTP/1.1 "+head+"\r\n\r\n")
	io.Copy(conn, from)
}

func (b *backend) answer(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("length") == "must" && r.ContentLength < 0 {
		w.WriteHeader(http.StatusLengthRequired)
		return
	}
	if status, err := strconv.Atoi(q.Get("status")); err == nil {
		w.WriteHeader(status)
		return
	}
	if takes, err := time.ParseDuration(q.Get("busy")); err == nil {
		b.busy.Lock()
		time.Sleep(takes)
		b.busy.Unlock()
	}
	events, err := strconv.Atoi(q.Get("events"))
	if err != nil && !q.Has("hold") {
		w.Header().Set("content-type", "application/json")
		io.WriteString(w, ok)
		return
	}
	every, _ := time.ParseDuration(q.Get("every"))
	w.Header().Set("content-type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	http.NewResponseController(w).Flush()
	for i := range events {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(every):
		}
		fmt.Fprintf(w, eventLine+"\n\n", i)
		http.NewResponseController(w).Flush()
	}
	if q.Has("hold") {
		select {
		case <-r.Context().Done():
		case <-b.hold:
			io.WriteString(w, heldEvent)
		}
	}
}

// release ends the answers that wait for it.
func (r *rig) release() {
	for _, b := range r.backends {
		close(b.hold)
	}
}

// take returns what the backend saw since the last call.
func (b *backend) take() []seen {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.seen
	b.seen = nil
	return s
}

// takeSeen returns what all backends saw since the last call.
func (r *rig) takeSeen() (all []seen) {
	for _, b := range r.backends {
		all = append(all, b.take()...)
	}
	return all
}

// oneSeen returns the one request that the backends saw.
func (r *rig) oneSeen(t *testing.T) seen {
	t.Helper()
	all := r.takeSeen()
	if len(all) != 1 {
		t.Fatalf("%d requests arrive, want 1", len(all))
	}
	return all[0]
}
