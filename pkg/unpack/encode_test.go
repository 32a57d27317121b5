package unpack

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// coding is one that is known, with an encoder. Those of the standard library are not of the library under test.
type coding struct {
	name   string
	encode func(plain []byte) []byte
}

var codings = []coding{
	{"gzip", func(plain []byte) []byte {
		return encoded(plain, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	}},
	{"deflate", func(plain []byte) []byte {
		return encoded(plain, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
	}},
	{"deflate", func(plain []byte) []byte {
		return encoded(plain, func(w io.Writer) io.WriteCloser { return must(flate.NewWriter(w, 6)) })
	}},
	{"br", func(plain []byte) []byte {
		return encoded(plain, func(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, 4) })
	}},
	{"zstd", func(plain []byte) []byte {
		return encoded(plain, func(w io.Writer) io.WriteCloser {
			return must(zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20)))
		})
	}},
}

func encoded(plain []byte, to func(io.Writer) io.WriteCloser) []byte {
	var b bytes.Buffer
	w := to(&b)
	if _, err := w.Write(plain); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// budget is a caller's, of so many bytes.
type budget struct{ size, used, most atomic.Int64 }

func (b *budget) take(n int) bool {
	used := b.used.Add(int64(n))
	if n > 0 && used > b.size.Load() {
		b.used.Add(int64(-n))
		return false
	}
	for most := b.most.Load(); used > most && !b.most.CompareAndSwap(most, used); most = b.most.Load() {
	}
	return true
}

// under is an Unpacker of one worker whose budget must be whole again when the test ends.
func under(t testing.TB, limit int) *Unpacker {
	b := &budget{}
	b.size.Store(1 << 40)
	t.Cleanup(func() {
		if used := b.used.Load(); used != 0 {
			t.Errorf("%d bytes of the budget did not come back", used)
		}
	})
	return New(1, limit, b.take)
}

// undo is the body undone, copied.
func undo(u *Unpacker, header string, body []byte) ([]byte, error) {
	plain, free, err := u.Body(context.Background(), header, body)
	defer free()
	return bytes.Clone(plain), err
}

// chat is a chat body of about n bytes whose text does not repeat itself.
func chat(n int) []byte {
	b := bytes.NewBufferString(`{"model":"m","messages":[{"role":"user","content":"`)
	for i := 0; b.Len() < n-4; i++ {
		fmt.Fprintf(b, "sentence %d says %x of it. ", i, uint32(i)*2654435761)
	}
	b.WriteString(`"}]}`)
	return b.Bytes()
}
