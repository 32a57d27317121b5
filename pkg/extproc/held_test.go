package extproc_test

import (
	"slices"
	"strings"
	"testing"
)

// TestHeldBytes holds that bodies count while they are held, where weir keeps them: in FULL_DUPLEX_STREAMED.
func TestHeldBytes(t *testing.T) {
	eachMode(t, options{seats: 1, heldBytes: 2*len(chatBody) - 1}, func(f *fake, m mode) {
		busy, waiting := f.fill(m)
		second := f.call(m)
		second.request(chatBody)
		want := map[mode]int{buffered: 2, streamed: 1}[m]
		if n := f.held(); n != want {
			f.t.Errorf("%d held, want %d", n, want)
		}
		if m == streamed {
			second.replies()
			if r := second.check.refusal; r.GetStatus().GetCode() != 429 || errorCode(r) != "full" {
				f.t.Errorf("refusal %v", r)
			}
			second.close()
		}
		waiting.cancel()
		second.cancel()
		for _, c := range busy {
			c.close()
		}
		f.held()
	})
}

// TestOwedGoesAtOnce holds that a request that is admitted at once, and so makes a held class owed, has that one
// released in the same instant and not at the next event.
func TestOwedGoesAtOnce(t *testing.T) {
	eachMode(t, options{}, func(f *fake, m mode) {
		body := func(fill string, n int) string {
			return `{"model": "m", "messages": [{"role": "user", "content": "` + strings.Repeat(fill, n) + `"}]}`
		}
		var calls []*call
		for slices.Min(f.leases()) == 0 { // 0.17 s of work and more: bulk waits until a quarter of tau is left
			c := f.call(m)
			c.request(body(string(rune('a'+len(calls))), 24_000))
			c.replies()
			calls = append(calls, c)
		}
		bulk := f.call(m)
		bulk.request(body("x", 400), "x-weir-class", "bulk")
		if n := f.held(); n != 1 {
			f.t.Fatalf("%d held, want 1", n)
		}
		calls = append(calls, f.call(m))
		calls[len(calls)-1].request(body("y", 400))
		if n := f.held(); n != 0 {
			f.t.Errorf("%d held after an admission of which bulk has a share", n)
		}
		bulk.replies()
		for _, c := range calls {
			c.replies()
			c.close()
		}
		f.take()
		bulk.close()
		if d := f.one(); d.Wait != 0 || d.Class != "bulk" {
			f.t.Errorf("%s waited %v", d.Class, d.Wait)
		}
	})
}
