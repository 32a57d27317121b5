package extproc_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirproxy/weir/pkg/route"
)

// TestBodyMemory is ai-gateway#1209: 500 uploads of 100 kB where there is memory for 100 of them. What is kept never
// passes the bound, the others are refused in their dialect, and when the first have gone there is room again.
func TestBodyMemory(t *testing.T) {
	const size, fit, all = 100_000, 100, 500
	withFake(t, options{limit: size, memory: fit * size}, func(f *fake) {
		var open, refused []*call
		for i := range all {
			path := []string{"/v1/chat/completions", "/v1/messages", "/rerank", "/index.html"}[i%4]
			c := f.call(streamed)
			c.headers(false, ":path", path, "content-length", "")
			c.body(strings.Repeat("x", size/2), false)
			c.body(strings.Repeat("x", size/2), false)
			synctest.Wait()
			kept := f.Server.Stats().BodyBytes
			if kept > fit*size {
				t.Fatalf("%d bytes are kept", kept)
			}
			if len(open) < fit {
				open = append(open, c)
				continue
			}
			refused = append(refused, c)
			c.replies()
			if r := c.check.refusal; r.GetStatus().GetCode() != 503 || r.GetDetails() != "weir_no_memory" {
				t.Fatalf("upload %d: %v", i, r)
			}
		}
		if n := f.Server.Stats(); n.BodyBytes != fit*size || n.BodyMemory != fit*size {
			t.Errorf("%d bytes of %d are kept, want %d", n.BodyBytes, n.BodyMemory, fit*size)
		}
		for _, c := range append(open[1:], refused...) {
			c.cancel()
		}
		synctest.Wait()
		if n := f.Server.Stats().BodyBytes; n != size {
			t.Errorf("%d bytes are kept of one upload of %d", n, size)
		}
		open[0].body("", true)
		open[0].replies()
		if open[0].check.pick == "" || len(open[0].check.echo) != size {
			t.Errorf("the one that stayed: pick %q, %d bytes come back", open[0].check.pick, len(open[0].check.echo))
		}
		open[0].close()
		if n := outcomes(f.take()); n[route.NoMemory] != all-fit || n[route.LeftBody] != fit-1 || n[route.Unanswered] != 1 {
			t.Errorf("outcomes %v", n)
		}
	})
}

// TestLengthIsJudgedAtTheHeaders holds that a body whose Content-Length is too large is refused before a byte of it is
// sent, in the modes in which weir would have to take it.
func TestLengthIsJudgedAtTheHeaders(t *testing.T) {
	for _, m := range append(modes, others...) {
		for length, want := range map[string]struct {
			outcome route.Outcome
			status  int
		}{"1000": {route.LeftBody, 0}, "1001": {route.TooLarge, 413}, "900": {route.NoMemory, 503}, "100": {route.LeftBody, 0}} {
			withFake(t, options{limit: 1000, memory: 2000}, func(f *fake) {
				if length == "900" {
					f.Server.Keep(1101)
				}
				switch m {
				case partial:
					want.outcome, want.status = route.LeftBody, 0
				case chunks, none: // decided at the headers
					want.outcome, want.status = route.Unanswered, 0
				}
				c := f.call(m)
				c.headers(false, "content-length", length)
				if m != streamed || want.status != 0 {
					c.reply()
				}
				if got := int(c.check.refusal.GetStatus().GetCode()); got != want.status {
					t.Errorf("%s, content-length %s: status %d, want %d", m, length, got, want.status)
				}
				synctest.Wait()
				c.cancel()
				if d := f.one(); d.Outcome != want.outcome {
					t.Errorf("%s, content-length %s: outcome %v", m, length, d.Outcome)
				}
				if length == "900" {
					f.Server.Keep(-1101)
				}
			})
		}
	}
}

// TestNoMemoryToParse holds both modes where the message, or the copy that is parsed, finds no room.
func TestNoMemoryToParse(t *testing.T) {
	const size = 60_000
	for m, room := range map[mode]int64{buffered: size - 1, partial: size - 1, streamed: 2*size - 1} {
		withFake(t, options{limit: size, memory: 2 * size}, func(f *fake) {
			f.Server.Keep(2*size - room)
			for _, n := range []int{size, size - 1} {
				c := f.call(m)
				c.request(strings.Repeat("x", n), "content-length", "")
				c.replies()
				if refused := c.check.refusal.GetDetails() == "weir_no_memory"; refused != (n == size) {
					t.Errorf("%s: %d bytes where there is room for %d: %v", m, n, size-1, c.check.refusal)
				}
				c.close()
			}
			f.Server.Keep(room - 2*size)
			f.take()
		})
	}
}

// TestRefusalReleasesTheBody holds that weir keeps nothing of a body that it refuses, though Envoy leaves the stream open
// and goes on sending for a while.
func TestRefusalReleasesTheBody(t *testing.T) {
	for name, o := range map[string]options{"too large": {limit: 1000}, "no replica": {none: true}, "full": {seats: 1, held: 1}} {
		withFake(t, o, func(f *fake) {
			if o.seats > 0 {
				busy, waiting := f.fill(buffered)
				defer func() {
					for _, c := range append(busy, waiting) {
						c.cancel()
					}
				}()
			}
			c := f.call(streamed)
			c.headers(false, "content-length", "")
			c.body(strings.Repeat("x", 1000), false)
			c.body("x", false)
			c.Send(piece("", true))
			for c.check.refusal == nil {
				c.reply()
			}
			c.Send(piece("more", true))
			synctest.Wait()
			if n := f.Server.Stats(); n.BodyBytes != 0 || n.Streams == 0 {
				t.Errorf("%s: %d bytes are kept, %d streams are open", name, n.BodyBytes, n.Streams)
			}
			c.cancel()
			f.take()
		})
	}
}

// TestSlowSenders has 2,000 clients that send a byte every two seconds for a minute: no place at the gate is theirs, no
// seat, and no more memory than their bytes. A quick one goes by.
func TestSlowSenders(t *testing.T) {
	const clients = 2000
	withFake(t, options{seats: 1}, func(f *fake) {
		var slow []*call
		for range clients {
			c := f.call(streamed)
			c.headers(false, "content-length", "33554432")
			slow = append(slow, c)
		}
		for second := 0; second < 60; second += 2 {
			time.Sleep(2 * time.Second)
			for _, c := range slow {
				c.Send(piece("x", false))
			}
		}
		synctest.Wait()
		if n := f.Server.Stats(); n.BodyBytes != clients*30 || n.Streams != clients {
			t.Errorf("%d bytes are kept for %d streams", n.BodyBytes, n.Streams)
		}
		if f.held() != 0 || sum(f.leases()) != 0 {
			t.Errorf("%d held, leases %v", f.held(), f.leases())
		}
		began := time.Now()
		quick := f.call(streamed)
		quick.request(chatBody)
		quick.replies()
		if quick.check.pick == "" || time.Since(began) != 0 {
			t.Errorf("a quick one: pick %q after %v", quick.check.pick, time.Since(began))
		}
		quick.close()
		for _, c := range slow {
			c.cancel()
		}
		if n := outcomes(f.take()); n[route.LeftBody] != clients {
			t.Errorf("outcomes %v", n)
		}
	})
}

// TestStreamedBodyIsCounted holds the same count where weir has to keep the body, and its end whatever ends the hold.
func TestStreamedBodyIsCounted(t *testing.T) {
	withFake(t, options{seats: 1}, func(f *fake) {
		busy, waiting := f.fill(streamed)
		before := f.Server.Stats().BodyBytes
		body := strings.Repeat("x", 5_000_000)
		var held []*call
		for range 3 {
			c := f.call(streamed)
			c.headers(false, "content-length", "")
			for at := 0; at < len(body); at += 1 << 20 {
				c.body(body[at:min(at+1<<20, len(body))], at+1<<20 >= len(body))
			}
			held = append(held, c)
		}
		synctest.Wait()
		if n := f.Server.Stats().BodyBytes - before; n != 3*int64(len(body)) {
			t.Errorf("%d bytes are kept of three bodies of %d", n, len(body))
		}
		held[0].cancel()
		waiting.cancel()
		for _, c := range busy {
			c.close()
		}
		for _, c := range held[1:] {
			c.replies()
			if len(c.check.echo) != len(body) {
				t.Errorf("%d bytes come back", len(c.check.echo))
			}
		}
		if n := f.Server.Stats().BodyBytes; n != 0 {
			t.Errorf("%d bytes are kept when all is echoed", n)
		}
		for _, c := range held[1:] {
			c.close()
		}
		f.take()
	})
}
