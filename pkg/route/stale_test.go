package route

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// scrapes has every replica whose metrics are read at a time scraped each second, with a counter that grows.
func (p *plant) scrapes(until time.Time, read func(slot int, s float64) bool) {
	s := p.now.Sub(epoch).Seconds()
	for i, at := range p.r.pool.Replicas {
		if read(i, s) {
			p.r.Observe(p.now, at.Endpoint, pool.Sample{At: p.now, HasTokens: true, Tokens: 1000 * s, HasKV: true, KV: 0.2})
		}
	}
	p.release()
	if p.now.Before(until) {
		p.after(time.Second, func() { p.scrapes(until, read) })
	}
}

// overload lives 20 s of twice the load that n replicas take, and returns the tokens that they got, in all and by
// slot. No admission may go over the knee of its replica by weir's own count.
func overload(t *testing.T, n int, read func(slot int, s float64) bool) (p *plant, total float64, slots []float64) {
	t.Helper()
	r := newRouter(n, Default())
	p, slots = newPlant(t, r, 3), make([]float64, n)
	p.seen = func(d *Decision) {
		slots[d.Choice.First.Slot] += d.ticket.Tokens
		total += d.ticket.Tokens
		if v := d.Choice.View; v.Wait >= v.Tau || !v.Free {
			t.Fatalf("%v after the start a replica above its knee takes a request: wait %v, tau %v", p.now.Sub(epoch), v.Wait, v.Tau)
		}
	}
	end := at(20)
	p.scrapes(end, read)
	p.stream(2*float64(n)*capacity(r, 2000, 10), end, func() *Request { return sized(2000, "interactive", "") })
	p.run(end)
	return p, total, slots
}

// TestStaleMetricsHoldNobody is llm-d-router#2100: the only replica's metrics fail, for all but the first second or from
// the start, while its answers come. Traffic flows as with metrics, by weir's own counters, and the page says stale.
func TestStaleMetricsHoldNobody(t *testing.T) {
	_, want, _ := overload(t, 1, func(int, float64) bool { return true })
	for name, read := range map[string]func(int, float64) bool{
		"read once":  func(_ int, s float64) bool { return s == 0 },
		"never read": func(int, float64) bool { return false },
	} {
		p, got, _ := overload(t, 1, read)
		t.Logf("%s: %.0f tokens, %.0f with metrics", name, got, want)
		if got < 0.9*want || got > 1.1*want {
			t.Errorf("%s: %.0f tokens, %.0f with metrics", name, got, want)
		}
		if s := p.r.Stats(p.now).Replicas[0].Scrape; name == "never read" && s != nil || name == "read once" && (s == nil || !s.Stale) {
			t.Errorf("%s: the page says %+v", name, s)
		}
		for class, ends := range p.ends {
			if ends[Answered] == 0 || len(ends) > 2 || ends[Answered]+ends[Late] == 0 {
				t.Errorf("%s: %s ends as %v", name, class, ends)
			}
		}
	}
}

// TestOneUnscrapedOfTen is the other half of it: a replica that was just added and never scraped costs a tenth at most,
// and takes its part.
func TestOneUnscrapedOfTen(t *testing.T) {
	_, want, _ := overload(t, 10, func(int, float64) bool { return true })
	_, got, slots := overload(t, 10, func(slot int, _ float64) bool { return slot != 4 })
	t.Logf("%.0f tokens, %.0f with all scraped; the one: %.0f", got, want, slots[4])
	if got < 0.9*want {
		t.Errorf("%.0f tokens, %.0f with all scraped", got, want)
	}
	if mean := got / 10; slots[4] < 0.8*mean || slots[4] > 1.2*mean {
		t.Errorf("the one that is not scraped takes %.0f tokens, a replica %.0f in the mean", slots[4], mean)
	}
}
