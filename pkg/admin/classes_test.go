package admin

import (
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/route"
)

// TestClassesOfAReload has a class added and one removed: what stays goes on counting, what is gone keeps its series
// and its counters, and no pool is left out.
func TestClassesOfAReload(t *testing.T) {
	a := newAdmin(router("llm", 1), router("other", 1))
	end := func(pool, class string) {
		d := route.Unrouted(pool, time.Now(), route.Late)
		d.Class = class
		a.Record(d)
	}
	series := func(pool, class string) string {
		return "weir_requests_total class=" + class + " outcome=late pool=" + pool
	}
	for _, class := range []string{"interactive", "bulk", "batch"} {
		end("llm", class) // batch is nobody's class yet
	}
	before := values(scrape(t, a))
	if has(before, series("llm", "batch")) || before[series("llm", "none")] != 1 {
		t.Error("a class is known before its time")
	}
	a.Classes([]string{"interactive", "batch"})
	if got := values(scrape(t, a)); got[series("llm", "batch")] != 0 || !has(got, series("llm", "batch")) || !has(got, series("other", "batch")) || !has(got, "weir_gate_wait_seconds class=batch pool=llm") {
		t.Errorf("a class of the reload has no series: %v", got)
	}
	for _, class := range []string{"interactive", "bulk", "batch"} {
		end("llm", class)
	}
	end("other", "batch")
	got := values(scrape(t, a))
	want := map[string]float64{
		series("llm", "interactive"): 2, series("llm", "bulk"): 2, series("llm", "batch"): 1, series("llm", "none"): 1, series("other", "batch"): 1,
	}
	maps.DeleteFunc(got, func(k string, _ float64) bool { return !has(want, k) })
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	was := len(values(scrape(t, a)))
	for range 100 {
		a.Classes([]string{"interactive"})
		a.Classes([]string{"bulk", "batch"})
	}
	if now := len(values(scrape(t, a))); now != was {
		t.Errorf("%d series after more reloads, %d before", now, was)
	}
}

// TestRecordDuringReloads is for the race detector, and loses no count.
func TestRecordDuringReloads(t *testing.T) {
	a := newAdmin(router("llm", 1))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				d := route.Unrouted("llm", time.Now(), route.Late)
				d.Class = "bulk"
				a.Record(d)
			}
		})
	}
	for range 100 {
		a.Classes([]string{"interactive"})
		a.Classes([]string{"bulk", "batch"})
	}
	all.Wait()
	if n := values(scrape(t, a))["weir_requests_total class=bulk outcome=late pool=llm"]; n != 4000 {
		t.Errorf("%v of 4000 counted", n)
	}
}
