package route

import "testing"

// TestAnAnswerWithoutTheEngineIsNoSign: a replica whose engine hangs still counts tokens and lists its models; that it
// does is no sign that it works, and what an engine computed is one.
func TestAnAnswerWithoutTheEngineIsNoSign(t *testing.T) {
	for name, want := range map[string]bool{"count": false, "nothing": false, "empty": false, "chat": true, "embeddings": true} {
		r := newRouter(1, Default())
		d := r.Route(at(0), shapes(1, 500)[name])
		d.Status = 200
		if got := d.worked(at(1), Answered); got != want {
			t.Errorf("%s: a sign %v", name, got)
		}
		r.Done(at(1), d, Answered)
		idle(t, r, at(1))
	}
}
