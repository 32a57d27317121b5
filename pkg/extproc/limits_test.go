package extproc_test

import (
	"strings"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/pkg/extproc"
	"github.com/weirproxy/weir/pkg/route"
)

// TestBodyLimit is ai-gateway#1209: a body of the limit is routed, one byte more is 413 in both modes, and in
// FULL_DUPLEX_STREAMED as soon as the byte is there.
func TestBodyLimit(t *testing.T) {
	const limit = 200_000
	eachMode(t, options{limit: limit}, func(f *fake, m mode) {
		for _, size := range []int{limit - 1, limit} {
			fits := f.call(m)
			fits.request(strings.Repeat("x", size))
			fits.replies()
			if fits.check.pick == "" || fits.check.refusal != nil {
				f.t.Errorf("%d bytes: pick %q, refusal %v", size, fits.check.pick, fits.check.refusal)
			}
			fits.close()
		}
		f.take()

		over := f.call(m)
		over.headers(false)
		if m == buffered {
			over.replies()
			over.body(strings.Repeat("x", limit+1), true)
		} else {
			over.body(strings.Repeat("x", limit), false)
			over.body("x", false) // and no end
		}
		over.replies()
		if r := over.check.refusal; r.GetStatus().GetCode() != 413 || errorCode(r) != "too_large" {
			f.t.Errorf("one byte more: %v", r)
		}
		over.close()
		if d := f.one(); d.Outcome != route.TooLarge {
			f.t.Errorf("outcome %v", d.Outcome)
		}
	})
}

// TestMessageLimit is the same for gRPC: its own limit of 4 MiB does not stand in the way, and a message may be 1 MiB
// more than a body.
func TestMessageLimit(t *testing.T) {
	withFake(t, options{}, func(f *fake) {
		for _, size := range []int{4<<20 - 1, 4<<20 + 1, 16 << 20, 32 << 20} {
			c := f.call(buffered)
			c.request(strings.Repeat("x", size))
			c.replies()
			if c.check.pick == "" {
				f.t.Errorf("%d bytes: no pick", size)
			}
			c.close()
		}
	})
	const limit = 1000
	withFake(t, options{limit: limit}, func(f *fake) {
		for _, tc := range []struct {
			size int
			ok   bool
		}{{limit + 1<<20, true}, {limit + 1<<20 + 1, false}} {
			c := f.call(buffered)
			c.headers(false)
			c.replies()
			c.send(messageOf(tc.size))
			if tc.ok {
				c.replies()
				c.close()
			} else {
				c.fails(codes.ResourceExhausted)
			}
			if d := f.one(); d.Outcome != route.TooLarge { // weir answers 413, or gRPC ends the stream
				f.t.Errorf("a message of %d bytes: outcome %v", tc.size, d.Outcome)
			}
		}
	})
}

// TestLargeBodies holds a raised limit: 64 MiB arrive and come back whole, and one byte more is refused.
func TestLargeBodies(t *testing.T) {
	const limit = 64 << 20
	text := strings.Repeat("x", limit+1)
	eachMode(t, options{limit: limit}, func(f *fake, m mode) {
		for size, want := range map[int]route.Outcome{16 << 20: route.Unanswered, limit: route.Unanswered, limit + 1: route.TooLarge} {
			c := f.call(m)
			c.headers(false)
			if m == buffered {
				c.replies()
				c.body(text[:size], true)
			} else {
				for at := 0; at < size; at += 1 << 20 {
					c.body(text[at:min(at+1<<20, size)], at+1<<20 >= size)
				}
			}
			c.replies()
			if m == streamed && want == route.Unanswered && len(c.check.echo) != size {
				f.t.Errorf("%d bytes of %d come back", len(c.check.echo), size)
			}
			c.close()
			if d := f.one(); d.Outcome != want {
				f.t.Errorf("%d bytes: outcome %v, want %v", size, d.Outcome, want)
			}
		}
	})
}

// messageOf returns a body message that is size bytes on the wire.
func messageOf(size int) *extprocv3.ProcessingRequest {
	body := &extprocv3.HttpBody{EndOfStream: true}
	m := &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{RequestBody: body}}
	for n := size; proto.Size(m) != size; n -= max(proto.Size(m)-size, 1) {
		body.Body = make([]byte, n)
	}
	return m
}

// TestRefusedRequestsChargeNothing is gateway-api-inference-extension PR#604: a request that weir answers itself touches no replica.
func TestRefusedRequestsChargeNothing(t *testing.T) {
	const each = 250
	eachMode(t, options{limit: 1000, seats: 1, held: 1}, func(f *fake, m mode) {
		busy, waiting := f.fill(m)
		for range each {
			full := f.call(m)
			full.request(chatBody)
			full.replies()
			if r := full.check.refusal; r.GetStatus().GetCode() != 429 || errorCode(r) != "full" {
				f.t.Fatalf("with the gate full: %v", r)
			}
			full.close()
			large := f.call(m)
			large.request(strings.Repeat("x", 1001))
			large.replies()
			large.close()
		}
		if n := f.leases(); sum(n) != len(endpoints) {
			f.t.Errorf("leases %v, want one each", n)
		}
		waiting.cancel()
		if n := f.held(); n != 0 {
			f.t.Errorf("%d held", n)
		}
		for _, c := range busy {
			c.close()
		}
		for range 2 * each {
			c := f.call(m)
			c.request(chatBody)
			c.replies()
			c.answer("200", endpoints[0])
			c.close()
		}
		n := outcomes(f.take())
		if n[route.Full] != each || n[route.TooLarge] != each || n[route.Answered] != len(busy)+2*each || n[route.LeftHeld] != 1 || len(n) != 4 {
			f.t.Errorf("outcomes %v", n)
		}
	})
}

func TestConfigValidate(t *testing.T) {
	for _, tc := range []struct {
		limit, memory int
		key           string // of the fault
	}{
		{extproc.Default().BodyLimit, extproc.Default().BodyMemory, ""},
		{1, 2, ""}, {1 << 30, 2 << 30, ""}, {1, 1 << 44, ""},
		{0, 1 << 20, "body_limit"}, {-1, 1 << 20, "body_limit"}, {1<<30 + 1, 1 << 40, "body_limit"},
		{1, 1, "body_memory"}, {1 << 20, 2<<20 - 1, "body_memory"}, {1, 0, "body_memory"}, {1, -1, "body_memory"}, {1, 1<<44 + 1, "body_memory"},
	} {
		err := extproc.Config{BodyLimit: tc.limit, BodyMemory: tc.memory}.Validate()
		if (err == nil) != (tc.key == "") || err != nil && !strings.HasPrefix(err.Error(), tc.key+": ") {
			t.Errorf("%d, %d: %v", tc.limit, tc.memory, err)
		}
	}
}
