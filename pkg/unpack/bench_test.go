package unpack

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"testing"
)

// BenchmarkBody undoes a chat body of each coding, per byte of what it stands for, beside the standard library's gzip.
func BenchmarkBody(b *testing.B) {
	for _, size := range []int{8 << 10, 128 << 10, 10 << 20} {
		plain := chat(size)
		for i, c := range codings {
			body := c.encode(plain)
			b.Run(fmt.Sprintf("%dKiB/%s.%d", size>>10, c.name, i), func(b *testing.B) {
				u := under(b, 32<<20)
				b.SetBytes(int64(len(plain)))
				b.ReportAllocs()
				for b.Loop() {
					got, free, err := u.Body(context.Background(), c.name, body)
					if err != nil || len(got) != len(plain) {
						b.Fatal(err)
					}
					free()
				}
			})
		}
		body := codings[0].encode(plain)
		b.Run(fmt.Sprintf("%dKiB/gzip.standard", size>>10), func(b *testing.B) {
			var r gzip.Reader
			var out bytes.Buffer
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				if err := r.Reset(bytes.NewReader(body)); err != nil {
					b.Fatal(err)
				}
				if n, err := io.Copy(&out, &r); err != nil || int(n) != len(plain) {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBomb is the whole time of the worst bodies under the default limit of 32 MiB, when no context ends it.
func BenchmarkBomb(b *testing.B) {
	worst := map[string][]byte{"hollow": hollow(1 << 20)}
	for _, c := range codings {
		worst[c.name] = zeros(c, 64<<20)
	}
	for _, name := range []string{"gzip", "deflate", "br", "zstd", "hollow"} {
		b.Run(name, func(b *testing.B) {
			u := under(b, 32<<20)
			coding := name
			if name == "hollow" {
				coding = "deflate"
			}
			b.ReportAllocs()
			for b.Loop() {
				_, free, _ := u.Body(context.Background(), coding, worst[name])
				free()
			}
		})
	}
}
