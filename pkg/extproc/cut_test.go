package extproc_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/extproc"
	"github.com/weirproxy/weir/pkg/route"
)

// TestCutHold is ai-gateway PR#1428: a hold that ends near message_timeout is Envoy's doing and not its client's, where
// Envoy has a timer that ignores weir's override of 305 s, and weir knows it. Whatever it is, the place at the gate is
// free in the same instant.
func TestCutHold(t *testing.T) {
	const timeout = time.Second
	ignores := []extproc.Timer{{Message: timeout, Most: 304 * time.Second}}
	takes := []extproc.Timer{{Message: timeout, Most: 305 * time.Second}}
	for _, tc := range []struct {
		timers    []extproc.Timer
		after     time.Duration
		bare, cut bool // bare: a request without a body
	}{
		{ignores, 0, false, false},
		{ignores, 949 * time.Millisecond, false, false},
		{ignores, 950 * time.Millisecond, false, true},
		{ignores, timeout, false, true},
		{ignores, timeout, true, true},
		{ignores, 1500 * time.Millisecond, false, true},
		{ignores, 1501 * time.Millisecond, false, false},
		{ignores, 20 * time.Second, false, false},
		{takes, timeout, false, false}, // a client with a timeout of its own
		{takes, timeout, true, false},
		{[]extproc.Timer{{Message: timeout}}, timeout, false, true}, // no max_message_timeout
		{[]extproc.Timer{{Message: 0}}, 0, false, false},            // Envoy lets nothing be held
		{append(takes, ignores...), timeout, false, true},           // one of two filters
		{append(takes, extproc.Timer{Message: 5 * timeout}), timeout, false, false},
		{append(takes, extproc.Timer{Message: 5 * timeout}), 5 * timeout, false, true},
		{nil, timeout, false, false}, // not known
	} {
		eachMode(t, options{seats: 1, timers: tc.timers}, func(f *fake, m mode) {
			busy, held := f.fill(m)
			if tc.bare {
				held.cancel()
				f.take()
				held = f.call(m)
				held.headers(true)
			}
			time.Sleep(tc.after)
			if n := f.held(); n != 1 {
				f.t.Fatalf("%d held, want 1", n)
			}
			held.cancel()
			if n := f.held(); n != 0 {
				f.t.Errorf("%d held after Envoy gave up", n)
			}
			want := route.LeftHeld
			if tc.cut && m == buffered {
				want = route.CutHeld
			}
			if d := f.one(); d.Outcome != want {
				f.t.Errorf("%v of %v: outcome %v, want %v", tc.after, tc.timers, d.Outcome, want)
			}
			for _, c := range busy {
				c.close()
			}
			f.take()
		})
	}
}

// TestCutHoldIsLogged wants an error that says what max_message_timeout must be, at most once a minute, with how many
// holds were cut since the last; and none for a client that leaves.
func TestCutHoldIsLogged(t *testing.T) {
	var log bytes.Buffer
	withFake(t, options{seats: 1, timers: []extproc.Timer{{Message: time.Second, Most: time.Minute}}, log: slog.New(slog.NewTextHandler(&log, nil))}, func(f *fake) {
		busy, first := f.fill(buffered)
		first.cancel()
		cut := func(n int) {
			for range n {
				c := f.call(buffered)
				c.request(chatBody)
				time.Sleep(time.Second)
				c.cancel()
				f.take()
			}
		}
		lines := func(n int, last string) {
			t.Helper()
			text := log.String()
			if strings.Count(text, "level=ERROR") != n || !strings.Contains(text, last) {
				t.Errorf("want %d lines, the last with %q:\n%s", n, last, text)
			}
			for line := range strings.Lines(text) {
				if !strings.Contains(line, "level=ERROR") || !strings.Contains(line, " max_message_timeout=1m0s max_message_timeout_needed=5m5s") || !strings.Contains(line, "message_timeout=1s") {
					t.Errorf("line %s", line)
				}
			}
		}
		cut(1)
		lines(1, "held_cut=1 ")
		cut(59)
		lines(1, "held_cut=1 ")
		cut(1) // the minute is over
		lines(2, "held_cut=60 ")
		time.Sleep(time.Hour)
		cut(2)
		lines(3, "held_cut=1 ")
		for _, c := range busy {
			c.close()
		}
		f.take()
	})
}

// TestStopWhileHeld stops weir while it holds: what finds a seat in time is released, the rest is refused a second before
// the cut, with 503 and Retry-After, in either mode; none goes past the gate, nor to a seat whose answer goes on. A
// request whose body is complete only then is refused at once.
func TestStopWhileHeld(t *testing.T) {
	eachMode(t, options{seats: 1}, func(f *fake, m mode) {
		busy, held := f.fill(m)
		calls := []*call{held, f.call(m), f.call(m, "weir-class", "bulk")}
		for _, c := range calls[1:] {
			c.request(chatBody)
		}
		late := f.call(m)
		late.headers(false)
		if m == buffered {
			late.replies()
		}
		if n := f.held(); n != 3 {
			f.t.Fatalf("%d held, want 3", n)
		}
		began := time.Now()
		go f.stop()
		if m == buffered {
			time.Sleep(4 * time.Second) // later than 2 s weir does not learn of a streamed answer's end
		}
		busy[0].cancel()
		if n := f.held(); n != 2 {
			f.t.Errorf("%d held when a seat is free, want 2", n)
		}
		calls[0].replies()
		if calls[0].check.pick == "" {
			f.t.Error("a request that finds a seat while weir stops is not released")
		}
		for _, c := range calls[1:] {
			c.replies()
			if after := time.Since(began); after != 6*time.Second {
				f.t.Errorf("refused %v after the stop, want 6 s", after)
			}
			c.stopped()
		}
		late.body(chatBody, true)
		late.replies()
		late.stopped()
		f.stop()
		if after := time.Since(began); after != 7*time.Second {
			f.t.Errorf("weir stops after %v", after)
		}
		if n := outcomes(f.take()); n[route.Stopped] != 3 || n[route.Answered] != 4 || n[route.Unanswered] != 1 {
			f.t.Errorf("outcomes %v", n)
		}
	})
}

// stopped wants the call to be refused as weir stops, and ends its stream as Envoy does.
func (c *call) stopped() {
	c.f.t.Helper()
	after := ""
	for _, h := range c.check.refusal.GetHeaders().GetSetHeaders() {
		if h.Header.Key == "retry-after" {
			after = string(h.Header.RawValue)
		}
	}
	if r := c.check.refusal; r.GetStatus().GetCode() != 503 || errorCode(r) != "stopped" || after == "" || after == "0" {
		c.f.t.Errorf("refusal %v, retry-after %q", r, after)
	}
	c.close()
}
