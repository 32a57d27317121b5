package envoy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/route"
)

// shortTimeout is Envoy's default, which the bootstrap raises.
var shortTimeout = []string{" message_timeout: 1s  ", " message_timeout: 0.2s  "}

// TestHoldsBeyondMessageTimeout is ai-gateway PR#1428: with 200 ms, holds of three times that, of a route that fails open
// and of one that fails closed. Weir's override carries both; where max_message_timeout is too small for it Envoy ends
// both, and weir knows.
func TestHoldsBeyondMessageTimeout(t *testing.T) {
	for _, version := range []string{envoy.Oldest, envoy.Newest} { // all at once: they wait for weir's first health check
		path := find(t, version)
		for _, c := range []struct {
			name  string
			edits []string
			show  func(t *testing.T, r *rig)
		}{
			{"accepted", nil, func(t *testing.T, r *rig) {
				bothHeldFor(t, r, 600*time.Millisecond)
				clientHasATimeout(t, r)
			}},
			{"ignored", []string{"max_message_timeout: 600s", "max_message_timeout: 304s"}, overrideIgnored},
		} {
			r := startRig(t, path, rigOptions{mode: envoy.Buffered, edits: append(c.edits, shortTimeout...)})
			t.Run(version+" "+c.name, func(t *testing.T) {
				t.Parallel()
				r.serve(t, 1)
				c.show(t, r)
			})
		}
	}
}

// tries is how often a test tries what a pause somewhere on a busy machine undoes.
const tries = 5

// heldBoth takes every seat, and has a request of each class held.
func (r *rig) heldBoth(t *testing.T) (seats answers, interactive, bulk <-chan reply) {
	t.Helper()
	seats = r.occupy(t)
	r.edge.take()
	return seats, r.send(t, t.Context()), r.send(t, t.Context(), "x-weir-class", "bulk")
}

// bothHeldFor holds a request of a route that fails open and one of a route that fails closed for so long: neither goes
// past the gate before, and both go on as picked.
func bothHeldFor(t *testing.T, r *rig, long time.Duration) {
	for try := range tries {
		seats, interactive, bulk := r.heldBoth(t)
		time.Sleep(long)
		held, early := r.held(), len(r.takeSeen())
		seats.end()
		one, two := <-interactive, <-bulk
		waited, picked := 0, 0
		for _, e := range r.drainedEnds(t) {
			if e.Wait >= long/2 && e.Outcome == route.Answered && e.Served == route.First {
				waited++
			}
		}
		for _, s := range r.takeSeen() {
			if len(s.picks) == 1 {
				picked++
			}
		}
		if held == 2 && early == 0 && one.status == 200 && two.status == 200 && min(one.took, two.took) >= long && waited == 2 && picked == 2 {
			return
		}
		t.Logf("try %d: %d held after %v, %d went past; statuses %d after %v and %d after %v; %d of 2 waited, %d arrive with a pick",
			try, held, long, early, one.status, one.took, two.status, two.took, waited, picked)
	}
	t.Errorf("in %d tries not both go on", tries)
}

// clientHasATimeout has a held request's client leave when a timer that ignored the override would have ended the hold:
// that is the client's doing, and no error.
func clientHasATimeout(t *testing.T, r *rig) {
	hit := 0
	for try := 0; hit == 0 && try < tries; try++ {
		seats, interactive, bulk := r.heldBoth(t)
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		<-r.send(t, ctx)
		cancel()
		seats.end()
		<-interactive
		<-bulk
		for _, e := range r.drainedEnds(t) {
			if e.Outcome == route.CutHeld {
				t.Errorf("a client that leaves after %v counts as cut by Envoy", e.after)
			}
			if e.Outcome == route.LeftHeld && e.after >= 190*time.Millisecond && e.after <= 700*time.Millisecond {
				hit++
			}
		}
	}
	if hit == 0 {
		t.Errorf("in %d tries no client leaves when a timer would have fired", tries)
	}
	if log := r.edge.log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("weir says\n%s", log)
	}
}

// overrideIgnored wants the request of the route that fails open to go past the gate, the bulk to fail, neither to be
// held any longer, and the outcome and the log to say what it was.
func overrideIgnored(t *testing.T, r *rig) {
	for try := range tries {
		seats, interactive, bulk := r.heldBoth(t)
		one, two := <-interactive, <-bulk
		eventually(t, "nothing is held", func() bool { return r.held() == 0 })
		seats.end()
		if s := r.oneSeen(t); one.status != 200 || len(s.picks) > 0 {
			t.Errorf("the interactive one: status %d, picks %v", one.status, s.picks)
		}
		if two.status != 504 || one.took > patience || two.took > patience {
			t.Errorf("bulk: status %d after %v", two.status, two.took)
		}
		cut := 0
		for _, e := range r.drainedEnds(t) {
			if e.Outcome == route.CutHeld {
				cut++
			}
		}
		if cut == 2 {
			break
		}
		if t.Logf("try %d: %d of 2 count as cut, after %v and %v", try, cut, one.took, two.took); try == tries-1 {
			t.Error("the holds do not count as cut")
		}
	}
	log := r.edge.log.String()
	if strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "max_message_timeout=5m4s max_message_timeout_needed=5m5s") {
		t.Errorf("weir says\n%s", log)
	}
}
