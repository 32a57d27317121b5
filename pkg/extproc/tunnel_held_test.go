package extproc_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/pkg/route"
)

const (
	tunnelKept = 1 << 20  // bytes that weir counts for a tunnel that is held
	sendQuota  = 64 << 10 // what gRPC's client takes from one that sends before it waits for the other side
)

// holdTunnel has a tunnel held.
func (f *fake) holdTunnel() *call {
	f.t.Helper()
	c := f.call(streamed)
	c.headers(false, "upgrade", "websocket", "connection", "upgrade")
	synctest.Wait()
	return c
}

// TestHeldTunnelIsBounded has Envoy send the bytes of tunnels that are held, in pieces of each size, for as long as gRPC takes
// them: that is no more than weir counts for them, and when they are let go every byte comes back.
func TestHeldTunnelIsBounded(t *testing.T) {
	const total = tunnelKept + 4*sendQuota
	for _, size := range []int{64 << 10, 500} {
		withFake(t, options{seats: 1}, func(f *fake) {
			busy, waiting := f.fill(streamed)
			waiting.cancel()
			synctest.Wait()
			before := f.Server.Stats().BodyBytes
			sent := [2]int{}
			var tunnels []*call
			for i := range sent {
				c := f.holdTunnel()
				tunnels = append(tunnels, c)
				go func() {
					for c.Send(piece(strings.Repeat("x", size), false)) == nil && sent[i]+size < total {
						sent[i] += size
					}
				}()
			}
			synctest.Wait()
			frame := 5 + proto.Size(piece(strings.Repeat("x", size), false)) // gRPC's prefix and the message
			for i := range sent {
				if n := sent[i] / size * frame; n < tunnelKept || n > tunnelKept+sendQuota+2*frame {
					t.Errorf("pieces of %d: gRPC takes %d bytes of a tunnel that is held, and weir counts %d", size, n, tunnelKept)
				}
			}
			if n := f.Server.Stats().BodyBytes - before; n != int64(len(sent))*tunnelKept {
				t.Errorf("%d bytes are counted for %d tunnels", n, len(sent))
			}
			for _, c := range busy {
				c.close()
			}
			for _, c := range tunnels {
				c.replies()
				for back := 0; back < total-size; {
					r, err := c.Recv()
					if err != nil {
						t.Fatalf("after %d bytes: %v", back, err)
					}
					back += len(r.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody())
				}
			}
			if n := f.Server.Stats().BodyBytes; n != 0 {
				t.Errorf("%d bytes are counted for tunnels that are let go", n)
			}
			for _, c := range tunnels {
				c.cancel()
			}
			f.take()
		})
	}
}

// TestTunnelElsewhereCountsNothing has a tunnel to a cluster that is not weir's: no memory is needed for what is never held.
func TestTunnelElsewhereCountsNothing(t *testing.T) {
	withFake(t, options{limit: tunnelKept, memory: 2 * tunnelKept}, func(f *fake) {
		f.Server.Keep(2 * tunnelKept)
		c := f.call(streamed)
		setCluster(c.tmpl["request_headers"], "no-pool-of-weir")
		c.headers(false, "upgrade", "websocket", "connection", "upgrade")
		c.reply()
		if c.check.refusal != nil {
			t.Errorf("refused: %v", c.check.refusal)
		}
		c.cancel()
		f.Server.Keep(-2 * tunnelKept)
		if d := f.one(); d.Outcome != route.NoPool {
			t.Errorf("outcome %v", d.Outcome)
		}
	})
}

// TestHeldTunnelsHaveBounds holds that tunnels wait only as long as the class may hold bytes, and weir has memory.
func TestHeldTunnelsHaveBounds(t *testing.T) {
	for details, o := range map[string]options{
		"weir_full":      {seats: 1, heldBytes: 3 * tunnelKept},
		"weir_no_memory": {seats: 1, limit: tunnelKept, memory: 3*tunnelKept + 1},
	} {
		withFake(t, o, func(f *fake) {
			busy, waiting := f.fill(streamed)
			waiting.cancel()
			calls := busy
			for range 3 {
				calls = append(calls, f.holdTunnel())
			}
			if n := f.held(); n != 3 {
				t.Errorf("%s: %d tunnels are held", details, n)
			}
			for range 2 {
				c := f.holdTunnel()
				c.reply()
				if got := c.check.refusal.GetDetails(); got != details {
					t.Errorf("refused as %q, want %s", got, details)
				}
				calls = append(calls, c)
			}
			if n := outcomes(f.take()); len(n) != 1 || n[route.LeftHeld] != 1 { // waiting
				t.Errorf("%s: outcomes %v", details, n)
			}
			for _, c := range calls {
				c.cancel()
			}
			if n := outcomes(f.take()); n[route.Full]+n[route.NoMemory] != 2 {
				t.Errorf("%s: outcomes %v", details, n)
			}
		})
	}
}
