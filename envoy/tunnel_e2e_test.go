package envoy_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/route"
)

// upgradable lets upgrades and CONNECT through.
var upgradable = []string{
	"          stat_prefix: front\n", "          stat_prefix: front\n          upgrade_configs: [{upgrade_type: websocket}, {upgrade_type: CONNECT}]\n",
	"              routes:\n              # Bulk fails closed", "              routes:\n              - {match: {connect_matcher: {}}, route: {cluster: replicas, timeout: 0s}}\n              # Bulk fails closed",
}

// websocket is the head of an upgrade.
const websocket = "GET /v1/realtime HTTP/1.1\nhost: weir\nconnection: upgrade\nupgrade: websocket\nsec-websocket-version: 13\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\n\n"

func connect(host string) string { return fmt.Sprintf("CONNECT %s HTTP/1.1\nhost: %[1]s\n\n", host) }

// TestTunnels holds what comes of an upgrade and of CONNECT: in FULL_DUPLEX_STREAMED their bytes pass, with a lease as long
// as the tunnel; in BUFFERED Envoy would wait for an end that never comes, and weir says no at once.
func TestTunnels(t *testing.T) {
	asks := map[string]string{"websocket": websocket, "CONNECT": connect(tunnelHost)}
	eachVersion(t, func(t *testing.T, path string) {
		eachMode(t, path, rigOptions{edits: upgradable}, func(t *testing.T, r *rig) {
			r.serve(t, 0)
			for name, head := range asks {
				c := r.dial(t, head)
				first := c.status(t)
				if r.mode == envoy.Buffered {
					if first != "HTTP/1.1 501 Not Implemented" {
						t.Errorf("%s: %s", name, first)
					}
					r.ends(t, name, route.Tunnel)
					continue
				}
				if first != "HTTP/1.1 101 Switching Protocols" && first != "HTTP/1.1 200 OK" {
					t.Errorf("%s: %s", name, first)
				}
				for _, line := range []string{"one\n", strings.Repeat("two ", 50_000) + "\n"} {
					io.WriteString(c.Conn, line)
					if got, err := c.ReadString('\n'); got != line {
						t.Errorf("%s: %d bytes of %d come back, %v", name, len(got), len(line), err)
					}
				}
				if n := r.leases(); n != 1 {
					t.Errorf("%s: %d leases", name, n)
				}
				c.Conn.Close()
				r.ends(t, name, route.Answered)
			}
		})
	})
}

// ends waits for the one request that ends, and wants its lease to be gone.
func (r *rig) ends(t *testing.T, name string, want route.Outcome) {
	t.Helper()
	if e := r.oneEnded(t); e.Outcome != want || r.leases() != 0 {
		t.Errorf("%s: outcome %v, %d leases", name, e.Outcome, r.leases())
	}
}

// TestExpectContinue has a client that sends no byte of its body before it is told to: Envoy tells it.
func TestExpectContinue(t *testing.T) {
	eachVersion(t, func(t *testing.T, path string) {
		eachMode(t, path, rigOptions{}, func(t *testing.T, r *rig) {
			r.serve(t, 0)
			c := r.dial(t, fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\nhost: x\nexpect: 100-continue\ncontent-length: %d\n\n", len(chat)))
			if got := c.status(t); got != "HTTP/1.1 100 Continue" {
				t.Error(got)
			}
			io.WriteString(c.Conn, chat)
			if got := c.status(t); got != "HTTP/1.1 200 OK" {
				t.Error(got)
			}
			c.Conn.Close()
			r.ends(t, "it", route.Answered)
		})
	})
}
