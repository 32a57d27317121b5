package extproc_test

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirproxy/weir/pkg/prompt"
	"github.com/weirproxy/weir/pkg/route"
)

// oddBody has what a cut may tear: a character of four bytes, an escape, a surrogate pair and a byte that is no UTF-8.
const oddBody = `{"model": "m", "messages": [{"role": "user", "content": "a weir \ud83d\ude00 ` + "\U0001F600 \xff" + ` \u00e9"}], "max_tokens": 64, "stream": true}`

// chunkings are ways to send a body: the pieces, and whether trailers end it.
func chunkings(body string) map[string]struct {
	pieces   []string
	trailers bool
} {
	third := len(body) / 3
	thirds := []string{body[:third], body[third : 2*third], body[2*third:]}
	return map[string]struct {
		pieces   []string
		trailers bool
	}{
		"one":              {pieces: []string{body}},
		"an empty last":    {pieces: []string{body, ""}},
		"bytes":            {pieces: strings.Split(body, "")}, // by characters: the byte that is none stands alone
		"raw bytes":        {pieces: rawBytes(body)},
		"thirds":           {pieces: thirds},
		"empty in between": {pieces: []string{"", thirds[0], "", "", thirds[1], thirds[2], ""}},
		"trailers":         {pieces: thirds, trailers: true},
		"empty, trailers":  {pieces: []string{thirds[0], thirds[1] + thirds[2], ""}, trailers: true},
	}
}

func rawBytes(body string) (all []string) {
	for i := range len(body) {
		all = append(all, body[i:i+1])
	}
	return all
}

// TestChunkingLeavesNoTrace is e2a PR#804: however a body is cut, the record of the decision is that of the uncut one.
// BUFFERED has one message, whose end trailers may take away.
func TestChunkingLeavesNoTrace(t *testing.T) {
	for _, m := range []mode{buffered, streamed, partial} {
		var want *structpb.Struct
		records := map[string]*structpb.Struct{}
		for name, c := range chunkings(oddBody) {
			if m != streamed { // Envoy itself collects the pieces
				c.pieces = []string{oddBody}
			}
			withFake(t, options{}, func(f *fake) {
				call := f.call(m)
				call.headers(false, "content-length", strconv.Itoa(len(oddBody)))
				if m != streamed {
					call.replies()
				}
				for i, p := range c.pieces {
					call.body(p, i == len(c.pieces)-1 && !c.trailers)
				}
				if m != streamed {
					call.replies()
				}
				if c.trailers {
					call.send(call.tmpl["request_trailers"])
				}
				call.replies()
				if m == streamed && string(call.check.echo) != oddBody {
					t.Errorf("%s: %q comes back", name, call.check.echo)
				}
				records[name] = call.check.record
				call.close()
				f.take()
			})
		}
		if want = records["one"]; want.GetFields()["api"].GetStringValue() != "chat" || want.GetFields()["reason"] != nil {
			t.Errorf("%s: the body is not read: %v", m, want)
		}
		for name, got := range records {
			if !proto.Equal(got, want) {
				t.Errorf("%s, %s: %v, and uncut %v", m, name, got, want)
			}
		}
	}
}

// TestBytesOneByOne sends a body of 20,000 bytes each in a message of its own.
func TestBytesOneByOne(t *testing.T) {
	body := `{"model": "m", "prompt": "` + strings.Repeat("a weir ", 3000) + `"}`
	withFake(t, options{}, func(f *fake) {
		c := f.call(streamed)
		c.headers(false)
		for i := range len(body) {
			c.body(body[i:i+1], false)
		}
		synctest.Wait()
		if n := f.Server.Stats().BodyBytes; n != int64(len(body)) {
			t.Errorf("%d bytes are kept of %d", n, len(body))
		}
		c.body("", true)
		c.replies()
		if string(c.check.echo) != body {
			t.Errorf("%d bytes come back", len(c.check.echo))
		}
		c.close()
		f.take()
	})
}

// TestPartial holds what BUFFERED_PARTIAL makes of the first message: cut, where Content-Length or a missing end says
// so, and then as large as Content-Length says. What follows passes without an answer of its own.
func TestPartial(t *testing.T) {
	whole := `{"model": "m", "messages": [{"role": "user", "content": "` + strings.Repeat("What is a weir? ", 1000) + `"}], "max_tokens": 64}`
	cut := whole[:5000]
	for _, tc := range []struct {
		name, length, first string
		end                 bool
		size                int // bytes that it counts as; 0: it is read whole
	}{
		{"cut", strconv.Itoa(len(whole)), cut, false, len(whole)},
		{"cut, in chunks", "", cut, false, len(cut)},
		{"cut, a length that is none", "12x", cut, false, len(cut)},
		{"whole", strconv.Itoa(len(whole)), whole, true, 0},
		{"whole, in chunks", "", whole, true, 0},
		{"whole, with trailers", strconv.Itoa(len(whole)), whole, false, 0},
	} {
		withFake(t, options{}, func(f *fake) {
			c := f.call(partial)
			c.headers(false, "content-length", tc.length)
			c.replies()
			c.body(tc.first, tc.end)
			c.replies()
			if c.check.pick == "" {
				t.Errorf("%s: no pick", tc.name)
			}
			if !tc.end {
				c.body(whole[len(tc.first):], true)
				c.replies()
			}
			c.answer("200", endpoints[0])
			c.close()
			switch d := f.one(); {
			case tc.size == 0 && (d.Prompt.Reason != prompt.ReasonNone || len(d.Prompt.Chain) == 0):
				t.Errorf("%s: reason %v", tc.name, d.Prompt.Reason)
			case tc.size > 0 && (d.Prompt.Tokens < tc.size/5 || d.Prompt.Tokens > tc.size/3):
				t.Errorf("%s: %d tokens of %d bytes", tc.name, d.Prompt.Tokens, tc.size)
			}
		})
	}
}

// TestUnseenBodies holds what NONE and STREAMED make of a body: decided at the headers, by what they tell of its size,
// and counted under its own reason. A body beyond body_limit is not weir's to refuse.
func TestUnseenBodies(t *testing.T) {
	for _, m := range []mode{none, chunks} {
		for length, tokens := range map[string]int{"4000": 1000, "": 1024, "x": 1024, "-4": 1024, "1125899906842623": prompt.MaxSizeTokens, "1125899906842624": 1024, "9223372036854775807": 1024, "100000000": prompt.MaxSizeTokens} {
			withFake(t, options{}, func(f *fake) {
				c := f.call(m)
				c.headers(false, "content-length", length)
				c.replies()
				if c.check.pick == "" {
					t.Error("no pick at the headers")
				}
				if m == chunks {
					for _, end := range []bool{false, true} {
						c.body("{", end)
						c.replies()
					}
				}
				c.answer("200", endpoints[0])
				c.close()
				if d := f.one(); d.Prompt.Reason != prompt.ReasonMode || d.Prompt.Tokens != tokens || d.Outcome != route.Answered {
					t.Errorf("%s, content-length %q: reason %v, %d tokens, %v", m, length, d.Prompt.Reason, d.Prompt.Tokens, d.Outcome)
				}
			})
		}
	}
}

// TestTrailersOfLargeBodies is envoy#27133: trailers end a body of 5 MB, and its pieces come back before them.
func TestTrailersOfLargeBodies(t *testing.T) {
	body := `{"model": "m", "prompt": "` + strings.Repeat("a weir. ", 640_000) + `"}`
	eachMode(t, options{}, func(f *fake, m mode) {
		c := f.call(m)
		c.headers(false)
		if m == buffered {
			c.replies()
			c.body(body, false)
			c.replies()
		} else {
			for rest := body; rest != ""; rest = rest[min(len(rest), 16<<10):] {
				c.body(rest[:min(len(rest), 16<<10)], false)
			}
		}
		c.send(c.tmpl["request_trailers"])
		c.replies()
		if m == streamed && string(c.check.echo) != body {
			t.Errorf("%d bytes of %d come back", len(c.check.echo), len(body))
		}
		c.answer("200", endpoints[0])
		c.close()
		if d := f.one(); d.Outcome != route.Answered || d.Prompt.Reason != prompt.ReasonNone {
			t.Errorf("outcome %v, reason %v", d.Outcome, d.Prompt.Reason)
		}
	})
}

// TestUnknownClusterPasses holds that weir keeps nothing of a body that it routes nowhere, however large.
func TestUnknownClusterPasses(t *testing.T) {
	withFake(t, options{limit: 100, memory: 200}, func(f *fake) {
		for _, m := range modes {
			c := f.call(m)
			setCluster(c.tmpl["request_headers"], "no-pool-of-weir")
			c.headers(false, "content-length", "1000")
			c.reply()
			pieces := map[mode]int{buffered: 1, streamed: 10}[m]
			for i := range pieces {
				c.body(strings.Repeat("x", 1000/pieces), i == pieces-1)
				c.reply()
			}
			c.close()
			if d := f.one(); d.Outcome != route.NoPool {
				t.Errorf("%s: outcome %v", m, d.Outcome)
			}
		}
	})
}
