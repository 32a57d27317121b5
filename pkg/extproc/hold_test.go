package extproc_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirproxy/weir/pkg/route"
)

// fill takes the one seat of each replica and has one request more held.
func (f *fake) fill(m mode, headers ...string) (busy []*call, waiting *call) {
	f.t.Helper()
	for range endpoints {
		c := f.call(m)
		c.request(chatBody)
		c.replies()
		c.answer("200", pickOf(c))
		busy = append(busy, c)
	}
	for i, n := range f.leases() {
		if n != 1 {
			f.t.Fatalf("%s has %d leases, want 1", endpoints[i], n)
		}
	}
	waiting = f.call(m)
	waiting.request(chatBody, headers...)
	if n := f.held(); n != 1 {
		f.t.Fatalf("%d held, want 1", n)
	}
	return busy, waiting
}

// pickOf returns the replica that was picked first.
func pickOf(c *call) string {
	for i := range c.check.pick {
		if c.check.pick[i] == ',' {
			return c.check.pick[:i]
		}
	}
	return c.check.pick
}

// TestHeldRequestIsReleased holds that a held request goes to the replica whose seat came free, that Envoy is told once
// to wait where it has a timer (in FULL_DUPLEX_STREAMED the checker refuses that), and that the record says so.
func TestHeldRequestIsReleased(t *testing.T) {
	eachMode(t, options{seats: 1}, func(f *fake, m mode) {
		busy, waiting := f.fill(m)
		if m == buffered {
			if d := waiting.reply().GetOverrideMessageTimeout().AsDuration(); d != 305*time.Second {
				f.t.Errorf("override %v, want max_hold of 300 s and 5 s", d)
			}
		}
		time.Sleep(2 * time.Second)
		if n := f.held(); n != 1 {
			f.t.Fatalf("%d held after 2 s, want 1", n)
		}
		free := pickOf(busy[2])
		busy[2].close()
		waiting.replies()
		if pickOf(waiting) != free {
			f.t.Errorf("released to %s, and %s is free", pickOf(waiting), free)
		}
		waiting.answer("200", free)
		for _, c := range append(busy[:2:2], busy[3], waiting) {
			c.close()
		}
		all := f.take()
		if d := all[len(all)-1]; d.Wait != 2*time.Second || d.Queued != 1 || d.Outcome != route.Answered {
			f.t.Errorf("wait %v, queued %d, outcome %v", d.Wait, d.Queued, d.Outcome)
		}
	})
}

// TestHeldWithoutBody holds that a request without a body is held and released at its headers.
func TestHeldWithoutBody(t *testing.T) {
	eachMode(t, options{seats: 1}, func(f *fake, m mode) {
		busy, waiting := f.fill(m)
		get := f.call(m)
		get.headers(true)
		synctest.Wait()
		for _, c := range busy {
			c.close()
		}
		for _, c := range []*call{waiting, get} {
			c.replies()
			c.close()
		}
		if n := outcomes(f.take()); n[route.Answered] != 4 || n[route.Unanswered] != 2 {
			f.t.Errorf("outcomes %v", n)
		}
	})
}

// TestHeldClientLeaves holds that a client that leaves frees its place at once, and not at the next tick or deadline.
func TestHeldClientLeaves(t *testing.T) {
	eachMode(t, options{seats: 1}, func(f *fake, m mode) {
		busy, waiting := f.fill(m)
		before := time.Now()
		waiting.cancel()
		if n := f.held(); n != 0 || time.Since(before) != 0 {
			f.t.Errorf("%d held %v after the client left", n, time.Since(before))
		}
		if d := f.one(); d.Outcome != route.LeftHeld {
			f.t.Errorf("outcome %v", d.Outcome)
		}
		for _, c := range busy {
			c.close()
		}
		f.take()
	})
}

// TestDeadline holds the refusal at the gate: at the deadline and not later, 429 with Retry-After and an OpenAI error
// object (the checker).
func TestDeadline(t *testing.T) {
	const deadline = 1500 * time.Millisecond
	eachMode(t, options{seats: 1}, func(f *fake, m mode) {
		began := time.Now()
		busy, waiting := f.fill(m, "x-weir-deadline", deadline.String())
		waiting.replies()
		r := waiting.check.refusal
		if r.GetStatus().GetCode() != 429 || errorCode(r) != "late" || r.GetDetails() != "weir_late" {
			f.t.Errorf("refusal %v", r)
		}
		for _, h := range r.GetHeaders().GetSetHeaders() {
			if h.Header.Key == "retry-after" {
				if s, err := strconv.Atoi(string(h.Header.RawValue)); err != nil || s < 1 || s > 60 {
					f.t.Errorf("retry-after %s", h.Header.RawValue)
				}
			}
		}
		// A request may also wait ten times its own prefill: some ms for this one.
		if waited := time.Since(began); waited < deadline || waited > deadline+50*time.Millisecond {
			f.t.Errorf("refused after %v, want %v", waited, deadline)
		}
		waiting.close()
		if d := f.one(); d.Outcome != route.Late || d.Class != "interactive" {
			f.t.Errorf("outcome %v, class %s", d.Outcome, d.Class)
		}
		for _, c := range busy {
			c.close()
		}
		f.take()
	})
}

// TestRouteMetadata holds that class and deadline of the HTTP route arrive, and that its class is a ceiling.
func TestRouteMetadata(t *testing.T) {
	withFake(t, options{seats: 1}, func(f *fake) {
		busy, waiting := f.fill(buffered)
		bulk := f.call(buffered, "weir-class", "bulk", "weir-deadline", "2s")
		bulk.request(chatBody, "x-weir-class", "interactive", "x-weir-deadline", "1h")
		began := time.Now()
		bulk.replies()
		if waited := time.Since(began); waited < 2*time.Second || waited > 2100*time.Millisecond {
			f.t.Errorf("refused after %v, want 2 s", waited)
		}
		bulk.close()
		if d := f.one(); d.Class != "bulk" || d.Outcome != route.Late {
			f.t.Errorf("class %s, outcome %v", d.Class, d.Outcome)
		}
		other := f.call(buffered, "weir-pool", "no-such-pool")
		other.request(chatBody)
		other.replies()
		other.close()
		if d := f.one(); d.Outcome != route.NoPool || d.Pool != "" {
			f.t.Errorf("weir-pool: outcome %v in pool %q", d.Outcome, d.Pool)
		}
		waiting.cancel()
		for _, c := range busy {
			c.close()
		}
	})
}

// TestRetryMovesTheLease holds that the lease follows an answer of the second choice.
func TestRetryMovesTheLease(t *testing.T) {
	eachMode(t, options{}, func(f *fake, m mode) {
		for _, tc := range []struct {
			at   func(c *call) string
			want route.Served
		}{
			{pickOf, route.First},
			{func(c *call) string { return c.check.pick[len(pickOf(c))+1:] }, route.Second},
			{other, route.Other},
			{func(*call) string { return "10.0.0.1:1" }, route.Other},
			{func(*call) string { return "" }, route.Unknown},
		} {
			c := f.call(m)
			c.request(chatBody)
			c.replies()
			at := tc.at(c)
			c.answer("200", at)
			for i, n := range f.leases() {
				if known := at == endpoints[i] || endpoints[i] == pickOf(c) && (at == "" || at == "10.0.0.1:1"); (n == 1) != known {
					f.t.Errorf("%v: %d leases at %s", tc.want, n, endpoints[i])
				}
			}
			c.close()
			if d := f.one(); d.Served != tc.want {
				f.t.Errorf("served %v, want %v", d.Served, tc.want)
			}
		}
	})
}

// other returns a replica that was not picked.
func other(c *call) string {
	for _, e := range endpoints {
		if second := c.check.pick[len(pickOf(c))+1:]; e != pickOf(c) && e != second {
			return e
		}
	}
	return ""
}

// TestEarlyEnd holds that a stream that ends right after an event stream's headers is counted: a configuration without
// response_trailer_mode SEND.
func TestEarlyEnd(t *testing.T) {
	withFake(t, options{}, func(f *fake) {
		for _, tc := range []struct {
			status string
			after  time.Duration
			early  int64
		}{{"200", 0, 1}, {"200", 49 * time.Millisecond, 2}, {"200", 51 * time.Millisecond, 2}, {"500", 0, 2}} {
			c := f.call(buffered)
			c.request(chatBody)
			c.replies()
			c.answer(tc.status, pickOf(c))
			time.Sleep(tc.after)
			c.close()
			f.take()
			if got := f.Server.Stats().Early; got != tc.early {
				f.t.Errorf("%s, ended after %v: %d early, want %d", tc.status, tc.after, got, tc.early)
			}
		}
	})
}
