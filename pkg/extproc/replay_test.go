package extproc_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirproxy/weir/pkg/route"
)

// recordedModes are the request body modes of the recordings, and by whose rules the checker takes weir's replies: all
// but FULL_DUPLEX_STREAMED want one reply to each message.
var recordedModes = map[string]mode{
	"buffered": buffered, "streamed": streamed, "partial": buffered, "plain-streamed": buffered, "none": buffered,
}

// replayed are the recordings of every mode. answered is what has an answer in each of them; the others end as they did
// when they were recorded.
var replayed = []struct {
	name     string
	answered bool
}{
	{"get", true}, {"head", true}, {"post", true}, {"expect", true}, {"chunks", true}, {"bytes", true}, {"empty", true}, {"empty-chunked", true},
	{"h2-post", true}, {"h2-trailers", true}, {"events", true}, {"abort-answer", true},
	{"abort-upload", false}, {"upgrade", false}, {"connect", false},
}

// TestRecordedStreams plays what each version of Envoy sent in each mode, and holds weir's replies to what Envoy takes.
func TestRecordedStreams(t *testing.T) {
	for _, version := range recorded {
		for name, m := range recordedModes {
			for _, r := range replayed {
				t.Run(version+"/"+name+"-"+r.name, func(t *testing.T) { replayedEnds(t, m, version, name+"-"+r.name, r.answered) })
			}
		}
		t.Run(version+"/partial-large", func(t *testing.T) { replayedEnds(t, buffered, version, "partial-large", true) })
	}
}

// replayedEnds plays a recording and wants the outcome that goes with it: answered where Envoy had an answer, and picked
// where weir picked; of a refused one, that of the only kind that is recorded.
func replayedEnds(t *testing.T, m mode, version, name string, answered bool) {
	picked, headers, refused := false, false, false
	for _, s := range steps(t, version, name) {
		picked = picked || s.reply.GetDynamicMetadata().GetFields()["envoy.lb"] != nil
		headers = headers || s.sent.GetResponseHeaders() != nil
		refused = refused || s.reply.GetImmediateResponse() != nil
	}
	if answered && !headers {
		t.Fatal("there is no answer in the recording")
	}
	want := map[bool]route.Outcome{true: route.Unanswered, false: route.LeftBody}[picked]
	switch {
	case headers:
		want = route.Answered
	case refused:
		want = route.Tunnel
	}
	withFake(t, options{}, func(f *fake) {
		c := f.replay(m, version, name)
		if headers && !strings.HasSuffix(name, "abort-answer") {
			c.close()
		} else {
			c.cancel()
		}
		if d := f.one(); d.Outcome != want {
			t.Errorf("outcome %v, want %v", d.Outcome, want)
		}
		if picked != (c.check.pick != "") {
			t.Errorf("pick %q", c.check.pick)
		}
	})
}

// replay plays a recording up to its end, which the caller makes. Where weir had replied, it waits for all that Envoy
// needs.
func (f *fake) replay(m mode, version, name string) *call {
	f.t.Helper()
	c := f.call(m)
	for _, s := range steps(f.t, version, name) {
		if s.sent != nil {
			c.send(s.sent)
		} else {
			c.replies()
		}
	}
	synctest.Wait() // weir has seen all
	return c
}
