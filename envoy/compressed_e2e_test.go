package envoy_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// compressedArrive is agentgateway#2402: weir reads what a client compressed as it reads the same chat plain, and the upstream
// gets the client's bytes and header.
func compressedArrive(t *testing.T, r *rig) {
	text := strings.Replace(chat, "weir", strings.Repeat("weir ", 2000), 1)
	codings := map[string]func(io.Writer) io.WriteCloser{
		"gzip": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"br":   func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
		"zstd": func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w)
			if err != nil {
				t.Fatal(err)
			}
			return z
		},
	}
	send := func(encoding string, body []byte) ended {
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", string(body))
		if encoding != "" {
			req.Header.Set("content-encoding", encoding)
		}
		if got := exchange(t, http.DefaultClient, req); got.status != 200 {
			t.Errorf("%s: status %d", encoding, got.status)
		}
		if s := r.oneSeen(t); s.hash != sha256.Sum256(body) {
			t.Errorf("%s: %d other bytes arrive", encoding, s.size)
		}
		return r.oneEnded(t)
	}
	plain := send("", []byte(text))
	for encoding, to := range codings {
		var b bytes.Buffer
		w := to(&b)
		io.WriteString(w, text)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := send(encoding, b.Bytes()); got.Prompt.Reason.String() != "none" || got.Prompt.Tokens != plain.Prompt.Tokens || plain.Prompt.Tokens < 1000 {
			t.Errorf("%s: reason %v, %d tokens, plain %d", encoding, got.Prompt.Reason, got.Prompt.Tokens, plain.Prompt.Tokens)
		}
	}
}
