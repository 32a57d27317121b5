package route

import (
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// fault is what becomes of a request that is picked for a replica that is dead.
type fault struct {
	name   string
	status int           // of the answer; 0: none comes
	events bool          // the headers of an event stream come at once, and nothing after them
	retry  bool          // Envoy is refused and tries the second
	after  time.Duration // of its end
	counts bool          // the replica's metrics are read: its counter stands still
	refuse bool          // a scrape is refused
}

var faults = []fault{
	{name: "answers 503 at once", status: 503, after: time.Millisecond},
	{name: "answers 502 at once, its metrics fine", status: 502, after: time.Millisecond, counts: true},
	{name: "refuses connections, the second serves", retry: true},
	{name: "refuses connections and scrapes", retry: true, refuse: true},
	{name: "hangs behind the headers of an event stream", status: 200, events: true, after: 10 * time.Second, counts: true},
	{name: "hangs, and Envoy answers 504", status: 504, after: 5 * time.Second},
	{name: "hangs, clients give up", after: 10 * time.Second, counts: true},
	{name: "hangs with its metrics, clients give up", after: 10 * time.Second},
}

// ward is a router over four replicas in virtual time, of which some are dead: a request each 10 ms, of 400 to
// 2,000 bytes, which lives for two seconds where it is served.
type ward struct {
	*testing.T
	r      *Router
	f      fault
	dead   func(slot int, s float64) bool
	blind  bool // no metrics are ever read
	step   int  // of 10 ms
	open   []patient
	held   []*Decision
	picks  [][]int // by second, by slot
	failed []int   // by second: requests whose client saw an error, or nothing
}

// blank is what bodies are cut from: nothing can be read there, so that load alone decides, by size.
var blank = make([]byte, 2000)

// patient is a request that goes on.
type patient struct {
	d   *Decision
	end time.Time
	by  Outcome
}

func (w *ward) now() time.Time { return at(float64(w.step) / 100) }

func (w *ward) run(seconds int) {
	for ; w.step < 100*seconds; w.step++ {
		if w.step%100 == 0 {
			w.picks, w.failed = append(w.picks, make([]int, len(w.r.pool.Replicas))), append(w.failed, 0)
			w.scrape()
		}
		w.open = slices.DeleteFunc(w.open, func(p patient) bool {
			over := !p.end.After(w.now())
			if over {
				w.r.Done(p.end, p.d, p.by)
			}
			return over
		})
		w.held = append(w.held, w.r.Route(w.now(), &Request{Path: "/v1/audio/speech", Body: blank[:400*(1+w.step%5)]}))
		w.r.Release(w.now())
		w.held = slices.DeleteFunc(w.held, func(d *Decision) bool {
			if d.Ready() != nil && !ready(d) {
				return false
			}
			if d.State == Picked {
				w.serve(d)
			} else {
				w.failed[len(w.failed)-1]++
			}
			return true
		})
	}
}

// serve is what Envoy and the replica do with a pick.
func (w *ward) serve(d *Decision) {
	first := d.Choice.First
	w.picks[len(w.picks)-1][first.Slot]++
	p := patient{d, w.now().Add(2 * time.Second), Answered}
	d.Status = 200
	served := first
	if s := float64(w.step) / 100; w.dead(first.Slot, s) {
		if second := d.Choice.Second; w.f.retry && !w.dead(second.Slot, s) {
			served = second
		} else {
			p = w.fail(d)
		}
	}
	if d.Status != 0 {
		w.r.Serve(w.now(), d, served.Endpoint)
	}
	w.open = append(w.open, p)
}

func (w *ward) fail(d *Decision) patient {
	w.failed[len(w.failed)-1]++
	p := patient{d, w.now().Add(w.f.after), Answered}
	switch d.Status, d.Events = w.f.status, w.f.events; {
	case w.f.retry:
		d.Status = 503 // both refuse
	case d.Status == 0:
		p.by = Unanswered
	}
	return p
}

func (w *ward) scrape() {
	s := float64(w.step) / 100
	for i, rep := range w.r.pool.Replicas {
		if w.blind {
			return
		}
		switch tokens := 1000 * s; {
		case !w.dead(i, s):
			w.r.Observe(w.now(), rep.Endpoint, pool.Sample{At: w.now(), Tokens: tokens, HasTokens: true})
		case w.f.counts:
			w.r.Observe(w.now(), rep.Endpoint, pool.Sample{At: w.now(), Tokens: 500, HasTokens: true})
		case w.f.refuse:
			w.r.Refuse(w.now(), rep.Endpoint)
		}
	}
}

// share is the part of the picks from one second to another that fell on the slots.
func (w *ward) share(from, to int, slots ...int) float64 {
	n, all := 0, 0
	for _, second := range w.picks[from:to] {
		for slot, k := range second {
			all += k
			if slices.Contains(slots, slot) {
				n += k
			}
		}
	}
	return float64(n) / float64(all)
}

func sum(n []int) (total int) {
	for _, v := range n {
		total += v
	}
	return total
}

// A dead replica is the idlest of all. It draws next to nothing, whatever it dies of, and the others take its load.
func TestDeadReplicaDrawsNothing(t *testing.T) {
	for _, f := range faults {
		for _, dead := range [][]int{{0}, {1, 3}} {
			w := &ward{T: t, r: newRouter(4, Default()), f: f, dead: func(slot int, _ float64) bool { return slices.Contains(dead, slot) }}
			w.run(60)
			share, errors := w.share(2, 60, dead...), sum(w.failed)
			t.Logf("%s, %d of 4 dead: %.4f of the picks after 2 s, %d of 6000 requests fail", f.name, len(dead), share, errors)
			if share > 0.02 {
				t.Errorf("%s, %d of 4 dead: %.4f of the picks after the first 2 s", f.name, len(dead), share)
			}
			if errors > 200 { // what hangs takes some until its silence is long enough
				t.Errorf("%s, %d of 4 dead: %d requests fail, want 200 at most", f.name, len(dead), errors)
			}
			if f.retry && errors > 5 {
				t.Errorf("%s: %d requests fail though the second serves", f.name, errors)
			}
		}
	}
}

// With every replica dead the rule is void: each request is picked at once, and all replicas go on being tried.
func TestAllDead(t *testing.T) {
	for _, f := range faults[:4] {
		w := &ward{T: t, r: newRouter(4, Default()), f: f, dead: func(int, float64) bool { return true }}
		w.run(20)
		for slot := range 4 {
			if s := w.share(5, 20, slot); s < 0.1 {
				t.Errorf("%s: replica %d gets %.3f of the picks", f.name, slot, s)
			}
		}
		if n := sum(w.failed); n != 2000 || len(w.held) != 0 {
			t.Errorf("%s: %d of 2000 were picked and failed, %d are held", f.name, n, len(w.held))
		}
	}
}

// A replica that works again has its share back after one back-off, 16 s at most, and one request's life; after one
// scrape where its metrics are read.
func TestRecovery(t *testing.T) {
	for _, f := range faults {
		for _, blind := range []bool{false, true} {
			const works = 23
			w := &ward{
				T: t, r: newRouter(4, Default()), f: f, blind: blind,
				dead: func(slot int, s float64) bool { return slot == 2 && s < works },
			}
			w.run(60)
			back := works
			for back < 60 && w.picks[back][2] < 10 {
				back++
			}
			limit := works + 2
			if blind {
				limit = works + 16 + max(3, int(f.after.Seconds())+1) // a trial just before it works again lives that long
			}
			if back > limit {
				t.Errorf("%s, blind %v: its share is back %d s after it works again", f.name, blind, back-works)
			}
			if s := w.share(50, 60, 2); s < 0.15 || s > 0.35 {
				t.Errorf("%s, blind %v: %.3f of the picks in the end", f.name, blind, s)
			}
		}
	}
}

// gateway-api-inference-extension#1497: a replica is scraped as idle, nothing waiting, and hangs from then on with
// its metrics. The two others are half busy. 300 requests come in 30 s.
func TestLastScrapeSaidIdle(t *testing.T) {
	r := newRouter(3, Default())
	for i := range 3 {
		r.Observe(at(0), endpoint(i), pool.Sample{At: at(0), HasRunning: true, HasWaiting: true, HasKV: true, HasTokens: true, Tokens: 1000})
	}
	picks := map[bool]int{}
	var open []patient
	var busy [3]pool.Lease
	for i := range 300 {
		now := at(float64(i) / 10)
		open = slices.DeleteFunc(open, func(p patient) bool {
			over := !p.end.After(now)
			if over {
				r.Done(p.end, p.d, p.by)
			}
			return over
		})
		if i%10 == 0 {
			for slot := 1; slot < 3; slot++ { // half a second of other work in each second
				busy[slot].Release(now, true)
				r.pool.Charge(now, &busy[slot], r.pool.Replicas[slot], pool.Load{Prompt: 17_000, Uncached: 17_000})
				r.Observe(now, endpoint(slot), pool.Sample{At: now, HasRunning: true, Running: 8, HasKV: true, KV: 0.5, HasTokens: true, Tokens: 1000 * float64(i)})
			}
		}
		d := r.Route(now, ask(i, 1000))
		if d.State != Picked {
			t.Fatalf("request %d: state %v of a pool that is half busy", i, d.State)
		}
		if s := r.pool.Replicas[0].Stats(now); d.Choice.First.Slot == 0 {
			picks[i >= 60]++
		} else {
			r.Serve(now, d, d.Choice.First.Endpoint)
			open = append(open, patient{d, now.Add(time.Second), Answered})
			if i >= 60 && (s.WaitSeconds == 0 || s.Leases == 0) {
				t.Fatalf("request %d: the silent replica looks idle: %+v", i, s)
			}
		}
	}
	if picks[false] == 0 || picks[true] > 12 {
		t.Errorf("the silent replica got %d requests in the first 6 s and %d of 240 afterwards", picks[false], picks[true])
	}
}
