package envoy_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/route"
)

// TestHeldCrowd holds many at bin/weir behind the newest Envoy: 2,500 at once, their order, a SIGTERM and a SIGKILL.
func TestHeldCrowd(t *testing.T) {
	weir := build(t)
	manyFiles(t, 4096)
	edits := []string{
		"{profile: 8B}", "{profile: 8B, seats: 1}",
		"{name: interactive, deadline: 30s}", "{name: interactive, deadline: 250s}", // a slow machine has time
		"bulk: true, share_percent: 5}", "bulk: true}", // which would let bulk go first at times
		" message_timeout: 1s  ", " message_timeout: 20s ", // a crowd on a busy machine
	}
	eachMode(t, find(t, envoy.Newest), rigOptions{edits: edits}, func(t *testing.T, r *rig) {
		w := r.startWeir(t, weir)
		r.awaitIdle(t)
		t.Run("2,500 at once", func(t *testing.T) { manyHeld(t, r) })
		t.Run("order", func(t *testing.T) { releaseOrder(t, r) })
		t.Run("SIGTERM with 200 held", func(t *testing.T) { stoppedWhileHeld(t, r, w) })
		t.Run("SIGKILL with 100 bulk held", func(t *testing.T) {
			closed := killedWhileBulkHeld(t, r, weir)
			if r.mode == envoy.Buffered {
				control := startRig(t, find(t, envoy.Newest), rigOptions{edits: append([]string{"failure_mode_allow: false, ", ""}, edits...)})
				killedWithBulkOpen(t, control, weir, r, closed)
			}
		})
	})
}

// awaitIdle waits until the weir process picks, and has nothing to do.
func (r *rig) awaitIdle(t *testing.T) {
	t.Helper()
	eventually(t, "a pick", func() bool { return r.picked(t) })
	r.awaitPool(t, "weir is idle", func(s route.Stats) bool { return leasesOf(s) == 0 && heldOf(s) == 0 })
	r.takeSeen()
}

// envoyMemory is what Envoy has allocated, in bytes.
func (r *rig) envoyMemory(t *testing.T) float64 {
	t.Helper()
	page, err := r.Get("/memory")
	var m struct {
		Allocated float64 `json:",string"`
	}
	if err == nil {
		err = json.Unmarshal(page, &m)
	}
	if err != nil || m.Allocated == 0 {
		t.Fatalf("/memory: %v in %s", err, page)
	}
	return m.Allocated
}

// manyHeld holds 2,500 requests at once and lets them go: each is answered once, and nothing is left of them.
func manyHeld(t *testing.T, r *rig) {
	const n = 2500
	seats := r.occupy(t)
	weir, goroutines, proxy := r.metric(t, "process_resident_memory_bytes"), r.metric(t, "go_goroutines"), r.envoyMemory(t)
	ends, hashes := r.crowd(t, n, "interactive", "")
	r.awaitHeld(t, n)
	t.Logf("a held request takes %.1f KiB of weir's resident memory, %.1f goroutines and %.1f KiB of Envoy's allocated",
		(r.metric(t, "process_resident_memory_bytes")-weir)/n/1024, (r.metric(t, "go_goroutines")-goroutines)/n, (r.envoyMemory(t)-proxy)/n/1024)
	if got := r.arrived(hashes); got != 0 {
		t.Errorf("%d of them have reached a replica", got)
	}
	began := time.Now()
	seats.end()
	for range n {
		if a := <-ends; a.status() != 200 {
			t.Fatalf("status %d, %v, %s", a.status(), a.err, a.text)
		}
	}
	t.Logf("%d are let go in %v", n, time.Since(began))
	r.arrived(hashes)
	for _, times := range hashes {
		if times != 1 {
			t.Fatalf("a request reaches replicas %d times", times)
		}
	}
	r.awaitPool(t, "nothing is held or charged", func(s route.Stats) bool { return leasesOf(s) == 0 && heldOf(s) == 0 })
	eventually(t, "weir's goroutines have ended", func() bool { return r.metric(t, "go_goroutines") < goroutines+20 })
}

// releaseOrder holds requests of both classes with and without deadlines, and lets one seat serve them one by one: by
// class, then by deadline, then as they came.
func releaseOrder(t *testing.T, r *rig) {
	seats := r.occupy(t)
	var done []<-chan reply
	for i, headers := range [][]string{
		{"x-weir-class", "bulk"},                                     // 300 s
		{"x-weir-class", "bulk", "x-weir-deadline", "100s"},          //
		{"accept", "first"},                                          // 250 s
		{"x-weir-deadline", "90s"},                                   //
		{"x-weir-class", "interactive", "x-weir-deadline", "60s"},    //
		{"accept", "second"},                                         // 250 s, a little later
		{"x-weir-class", "bulk", "x-weir-deadline", "50s"},           //
		{"x-weir-deadline", "120s", "x-weir-class", "no-such-class"}, //
	} {
		done = append(done, r.send(t, t.Context(), append(headers, "x-mark", strconv.Itoa(i))...))
		r.awaitHeld(t, i+1)
	}
	seats[2]()
	for i := range done {
		if got := <-done[i]; got.status != 200 {
			t.Errorf("request %d: status %d", i, got.status)
		}
	}
	var order [][]string
	for _, b := range r.backends {
		var marks []string
		for _, s := range b.take() {
			marks = append(marks, s.mark)
		}
		if len(marks) > 0 {
			order = append(order, marks)
		}
	}
	if want := []string{"4", "3", "7", "2", "5", "6", "1", "0"}; len(order) != 1 || !slices.Equal(order[0], want) {
		t.Errorf("the one replica with a seat serves %v, want %v", order, want)
	}
	seats.end()
	r.awaitPool(t, "weir is idle", func(s route.Stats) bool { return leasesOf(s) == 0 })
}

// stoppedWhileHeld stops weir in order while it holds 200. Two seats come free, and two go on; of the others each gets 503
// and a time to come back, at the end of the drain, and none goes past the gate: neither those that fail open.
func stoppedWhileHeld(t *testing.T, r *rig, w *weirProc) {
	seats := r.occupy(t)
	interactive, bodies := r.crowd(t, 100, "interactive", endless)
	bulk, more := r.crowd(t, 100, "bulk", endless)
	r.awaitHeld(t, 200)
	if err := w.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	seats[0]()
	seats[3]()
	released := 0
	for class, ends := range map[string]<-chan asked{"interactive": interactive, "bulk": bulk} {
		for range cap(ends) {
			switch a := <-ends; {
			case class == "interactive" && a.status() == 200:
				released++
			case a.status() != 503 || a.code() != "stopped" || a.resp.Header.Get("retry-after") == "":
				t.Fatalf("%s: status %d, %v, %s", class, a.status(), a.err, a.text)
			}
		}
	}
	t.Logf("all have an answer %v after SIGTERM", time.Since(began))
	if n := r.arrived(bodies) + r.arrived(more); released != 2 || n != 2 {
		t.Errorf("%d are released, %d reach a replica, want 2", released, n)
	}
	select {
	case <-w.ended:
		t.Logf("weir ends %v after SIGTERM, with status %d", time.Since(began), w.code)
		if w.code != 0 {
			t.Errorf("exit status %d", w.code)
		}
	case <-time.After(patience):
		t.Error("weir does not end")
	}
}
