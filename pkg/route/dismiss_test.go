package route

import (
	"testing"
	"time"
)

// TestDismiss: who is held when weir stops is refused, once, with a time to come back; nobody else is.
func TestDismiss(t *testing.T) {
	r := newRouter(1, holding(3))
	picked := r.Route(at(0), ask(1, 10))
	fill(r, at(0))
	held, released := r.Route(at(0), ask(2, 10)), r.Route(at(0), ask(3, 10))
	if !r.Dismiss(at(2), held) || held.State != Refused || held.Outcome != Stopped || held.Wait != 2*time.Second {
		t.Errorf("held: state %v, outcome %v, wait %v", held.State, held.Outcome, held.Wait)
	}
	if held.Retry < minRetry || held.Retry > maxRetry {
		t.Errorf("held: retry after %v", held.Retry)
	}
	r.Release(at(3600))
	for name, d := range map[string]*Decision{"picked": picked, "dismissed": held, "late": released} {
		if was := d.Outcome; r.Dismiss(at(3600), d) || d.Outcome != was {
			t.Errorf("%s: dismissed, outcome %v", name, d.Outcome)
		}
	}
	if n := r.Stats(at(3600)).Held["interactive"]; n != 0 {
		t.Errorf("%d held", n)
	}
	r.Done(at(3600), held, Unanswered)
	if held.Outcome != Stopped {
		t.Errorf("after its end: outcome %v", held.Outcome)
	}
}

// TestCutHeld: only who is still held was cut in the hold; who was released in the same instant has had no answer.
func TestCutHeld(t *testing.T) {
	r := newRouter(1, holding(3))
	picked := r.Route(at(0), ask(1, 10))
	fill(r, at(0))
	held, late := r.Route(at(0), ask(2, 10)), r.Route(at(0), ask(3, 10))
	r.Done(at(1), held, CutHeld)
	r.Done(at(1), picked, CutHeld)
	r.Release(at(3600))
	r.Done(at(3600), late, CutHeld)
	if held.Outcome != CutHeld || held.Wait != time.Second || picked.Outcome != Unanswered || late.Outcome != Late {
		t.Errorf("held: %v after %v; picked: %v; late: %v", held.Outcome, held.Wait, picked.Outcome, late.Outcome)
	}
}
