package extproc_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/weirproxy/weir/pkg/prompt"
)

// encoded is text in a coding.
func encoded(t *testing.T, text string, to func(io.Writer) io.WriteCloser) string {
	t.Helper()
	var b bytes.Buffer
	w := to(&b)
	io.WriteString(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A compressed body is read as its client wrote it, in every mode and however it is cut into messages, and goes on as it came
// (the fake's checker). What cannot be undone is routed by its size.
func TestCompressedBodies(t *testing.T) {
	text := strings.Replace(chatBody, "What", strings.Repeat("What ", 2000), 1)
	squeezed := encoded(t, text, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	bomb := encoded(t, `{"model":"m","prompt":"`+strings.Repeat("a", 3<<20)+`"}`, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	cases := []struct {
		encoding, body string
		reason         prompt.Reason
	}{
		{"", text, prompt.ReasonNone},
		{"identity", text, prompt.ReasonNone},
		{"gzip", squeezed, prompt.ReasonNone},
		{"X-GZIP", squeezed, prompt.ReasonNone},
		{"identity, gzip", squeezed, prompt.ReasonNone},
		{"deflate", encoded(t, text, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }), prompt.ReasonNone},
		{"br", encoded(t, text, func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) }), prompt.ReasonNone},
		{"zstd", encoded(t, text, func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w)
			if err != nil {
				t.Fatal(err)
			}
			return z
		}), prompt.ReasonNone},
		{"gzip", text, prompt.ReasonNone}, // the header is wrong
		{"gzip, zstd", squeezed, prompt.ReasonEncoding},
		{"foo", text, prompt.ReasonEncoding},
		{"gzip", squeezed[:len(squeezed)/2], prompt.ReasonEncoding},
		{"br", squeezed, prompt.ReasonEncoding},
		{"gzip", bomb, prompt.ReasonInflated},
	}
	for _, m := range []mode{buffered, streamed} {
		withFake(t, options{limit: 2 << 20, memory: 8 << 20}, func(f *fake) {
			var want prompt.Prompt
			for i, c := range cases {
				call := f.call(m)
				call.request(c.body, ":path", "/v1/chat/completions", "content-encoding", c.encoding)
				call.replies()
				call.close()
				got := f.one().Prompt
				if i == 0 {
					want = got
				}
				same := slices.Equal(got.Chain, want.Chain) && got.Tokens == want.Tokens
				if got.Reason != c.reason || same != (c.reason == prompt.ReasonNone) || len(want.Chain) < 10 || got.Tokens == 0 {
					t.Errorf("%v, %q, %d bytes: reason %v, %d blocks, %d tokens", m, c.encoding, len(c.body), got.Reason, len(got.Chain), got.Tokens)
				}
			}
			if kept := f.Stats().BodyBytes; kept != 0 {
				t.Errorf("%d bytes are kept at the end", kept)
			}
		})
	}
}

// In BUFFERED_PARTIAL a compressed body is read as far as it came, and one of which nothing comes out counts by its size: what
// was compressed well must not pass for a request without a body.
func TestCompressedBeginnings(t *testing.T) {
	text := strings.Replace(chatBody, `"user"`, `"system"`, 1)
	text = strings.Replace(text, "What", strings.Repeat("What is it, and why? ", 20_000), 1)
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for encoding, body := range map[string]string{
		"zstd": string(z.EncodeAll([]byte(text), nil)),
		"gzip": encoded(t, text, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }),
	} {
		for _, n := range []int{5, 100, len(body) / 2, len(body) - 1} {
			withFake(t, options{}, func(f *fake) {
				c := f.call(partial)
				c.headers(false, ":path", "/v1/chat/completions", "content-encoding", encoding, "content-length", strconv.Itoa(len(body)))
				c.replies()
				c.body(body[:n], false)
				c.replies()
				c.close()
				got := f.one().Prompt
				if least := len(body) / 4; got.Tokens < least || got.Reason == prompt.ReasonEmpty {
					t.Errorf("%s, %d of %d bytes: %d tokens, want %d at least; reason %v, %d blocks", encoding, n, len(body), got.Tokens, least, got.Reason, len(got.Chain))
				}
			})
		}
	}
}
