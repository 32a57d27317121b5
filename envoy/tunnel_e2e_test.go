package envoy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/route"
)

// startTunnels is a replica that takes any upgrade and CONNECT, and sends back each line; other requests get the size of
// their body.
func startTunnels(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect && r.Header.Get("upgrade") == "" {
			n, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprintf(w, "%d\n", n)
			return
		}
		c, lines, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		if r.Method == http.MethodConnect {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		} else {
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n")
		}
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(c, line)
		}
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// raw is a client that writes what it likes.
type raw struct {
	net.Conn
	*bufio.Reader
	t *testing.T
}

func (r *rig) dial(t *testing.T, head string) *raw {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.front, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, strings.ReplaceAll(head, "\n", "\r\n"))
	return &raw{c, bufio.NewReader(c), t}
}

// answer reads the head of an answer and returns its first line.
func (c *raw) answer() (first string) {
	c.t.Helper()
	for {
		line, err := c.ReadString('\n')
		if err != nil {
			c.t.Fatalf("after %q: %v", first, err)
		}
		if first == "" {
			first = strings.TrimSpace(line)
		}
		if line == "\r\n" {
			return first
		}
	}
}

// TestTunnels holds what comes of an upgrade and of CONNECT: in FULL_DUPLEX_STREAMED their bytes pass, with a lease as long
// as the tunnel; in BUFFERED Envoy would wait for an end that never comes, and weir says no at once.
func TestTunnels(t *testing.T) {
	asks := map[string]string{
		"websocket": "GET /v1/realtime HTTP/1.1\nhost: x\nupgrade: websocket\nconnection: upgrade\n\n",
		"CONNECT":   "CONNECT x:80 HTTP/1.1\nhost: x:80\n\n",
	}
	eachVersion(t, func(t *testing.T, path string) {
		for _, mode := range []envoy.Mode{envoy.Buffered, envoy.Streamed} {
			r := startRig(t, path, rigOptions{mode: mode, addrs: []string{startTunnels(t)}, edits: upgradable})
			r.serve(t, 0)
			for name, head := range asks {
				c := r.dial(t, head)
				first := c.answer()
				if mode == envoy.Buffered {
					if first != "HTTP/1.1 501 Not Implemented" {
						t.Errorf("%s, %s: %s", mode, name, first)
					}
					r.ends(t, string(mode)+" "+name, route.Tunnel)
					continue
				}
				if first != "HTTP/1.1 101 Switching Protocols" && first != "HTTP/1.1 200 OK" {
					t.Errorf("%s, %s: %s", mode, name, first)
				}
				for _, line := range []string{"one\n", strings.Repeat("two ", 50_000) + "\n"} {
					io.WriteString(c.Conn, line)
					if got, err := c.ReadString('\n'); got != line {
						t.Errorf("%s, %s: %d bytes of %d come back, %v", mode, name, len(got), len(line), err)
					}
				}
				if n := r.leases(); n != 1 {
					t.Errorf("%s, %s: %d leases", mode, name, n)
				}
				c.Conn.Close()
				r.ends(t, string(mode)+" "+name, route.Answered)
			}
		}
	})
}

// ends waits for the one request that ends, and for its lease.
func (r *rig) ends(t *testing.T, name string, want route.Outcome) {
	t.Helper()
	var all []ended
	eventually(t, name+" ends", func() bool {
		all = append(all, r.edge.take()...)
		return len(all) > 0 && r.leases() == 0
	})
	if len(all) != 1 || all[0].Outcome != want {
		t.Errorf("%s: %d ended, the first %v", name, len(all), all[0].Outcome)
	}
}

// TestExpectContinue has a client that sends no byte of its body before it is told to: Envoy tells it.
func TestExpectContinue(t *testing.T) {
	eachVersion(t, func(t *testing.T, path string) {
		for _, mode := range []envoy.Mode{envoy.Buffered, envoy.Streamed} {
			r := startRig(t, path, rigOptions{mode: mode, addrs: []string{startTunnels(t)}})
			r.serve(t, 0)
			c := r.dial(t, fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\nhost: x\nexpect: 100-continue\ncontent-length: %d\n\n", len(chat)))
			if got := c.answer(); got != "HTTP/1.1 100 Continue" {
				t.Errorf("%s: %s", mode, got)
			}
			io.WriteString(c.Conn, chat)
			if got := c.answer(); got != "HTTP/1.1 200 OK" {
				t.Errorf("%s: %s", mode, got)
			}
			c.Conn.Close()
			r.ends(t, string(mode), route.Answered)
		}
	})
}
