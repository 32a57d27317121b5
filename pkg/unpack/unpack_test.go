package unpack

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// TestHeaders is what a content-encoding may say of one body: agentgateway#2402.
func TestHeaders(t *testing.T) {
	plain, u := chat(5000), under(t, 1<<20)
	with := map[string][]byte{"": plain}
	for _, c := range codings {
		with[c.name] = c.encode(plain)
	}
	for _, c := range []struct {
		header, coding string
		want           error
	}{
		{"", "", nil}, {"identity", "", nil}, {" , identity ,", "", nil}, {"IDENTITY", "", nil},
		{"gzip", "gzip", nil}, {"x-gzip", "gzip", nil}, {"GZIP", "gzip", nil}, {" gzip ,", "gzip", nil}, {"identity, gzip", "gzip", nil},
		{"deflate", "deflate", nil}, {"br", "br", nil}, {"Br", "br", nil}, {"zstd", "zstd", nil},
		{"gzip, zstd", "zstd", ErrCoding}, {"gzip,gzip", "gzip", ErrCoding}, {"foo", "gzip", ErrCoding}, {"foo, identity", "gzip", ErrCoding},
		{"gzip;q=1", "gzip", ErrCoding}, {"compress", "gzip", ErrCoding}, {strings.Repeat("x", 1<<20), "gzip", ErrCoding},
		{"zstd", "gzip", ErrCoding}, {"gzip", "zstd", ErrCoding}, {"br", "zstd", ErrCoding}, {"deflate", "gzip", ErrCoding},
		// The header is wrong, and the body can be read all the same.
		{"gzip", "", nil}, {"deflate", "", nil}, {"br", "", nil}, {"zstd", "", nil},
		// What is not known may have any meaning.
		{"foo", "", ErrCoding}, {"gzip, br", "", ErrCoding},
	} {
		got, err := undo(u, c.header, with[c.coding])
		if !errors.Is(err, c.want) || err == nil && !bytes.Equal(got, plain) || err != nil && got != nil {
			t.Errorf("%.20q over %q: %d bytes and %v, want %v", c.header, c.coding, len(got), err, c.want)
		}
		if err != nil && len(err.Error()) > 200 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	}
}

// TestReferenceEncoders: bodies that the reference encoders made. A zstd window above 8 MiB is refused.
func TestReferenceEncoders(t *testing.T) {
	u := under(t, 1<<20)
	file := func(name string) []byte { return must(os.ReadFile("testdata/chat." + name)) }
	for name, want := range map[string]error{
		"gzip": nil, "zlib.deflate": nil, "raw.deflate": nil, "br": nil, "window24.br": nil,
		"sized.zstd": nil, "streamed.zstd": nil, "window23.zstd": nil, "window27.zstd": ErrCoding,
	} {
		coding := name[strings.LastIndex(name, ".")+1:]
		if got, err := undo(u, coding, file(name)); !errors.Is(err, want) || err == nil && !bytes.Equal(got, file("json")) {
			t.Errorf("%s: %d bytes and %v, want %v", name, len(got), err, want)
		}
	}
}

// TestCut: a body cut anywhere is ErrCut, and what comes with it is how the whole begins. Of a body longer than what a
// decoder gathers, most comes.
func TestCut(t *testing.T) {
	plain, u := chat(1<<20), under(t, 2<<20)
	for _, c := range codings {
		whole := c.encode(plain)
		for _, part := range []int{1, 2, 5, 17, 100, len(whole) / 2, len(whole) - 1} {
			got, err := undo(u, c.name, whole[:part])
			if !errors.Is(err, ErrCut) || !bytes.HasPrefix(plain, got) {
				t.Errorf("%s cut at %d of %d: %d bytes and %v", c.name, part, len(whole), len(got), err)
			}
			if part >= len(whole)/2 && len(got) < len(plain)/4 {
				t.Errorf("%s cut at %d of %d gives %d bytes of %d", c.name, part, len(whole), len(got), len(plain))
			}
		}
	}
}

// TestDamage: a damaged body is an error and nothing else, and the next body is read as ever.
func TestDamage(t *testing.T) {
	plain, u := chat(20_000), under(t, 1<<20)
	for _, c := range codings {
		whole := c.encode(plain)
		if _, err := undo(u, c.name, append(bytes.Clone(whole), "more than a header"...)); !errors.Is(err, ErrCoding) {
			t.Errorf("%s with more behind its end: %v", c.name, err)
		}
		for at := range 40 {
			broken := bytes.Clone(whole)
			broken[at*len(whole)/40] ^= 0x55
			got, err := undo(u, c.name, broken)
			if checked := c.name != "br" && !(c.name == "deflate" && !zlibHeader(whole)); checked && err == nil && !bytes.Equal(got, plain) {
				t.Errorf("%s damaged at %d/40 is read as something else", c.name, at)
			}
			if got, err := undo(u, c.name, whole); err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("%s after a damaged one: %v", c.name, err)
			}
		}
	}
}

// TestJoined: gzip members and zstd frames may follow one another.
func TestJoined(t *testing.T) {
	plain, u := chat(5000), under(t, 1<<20)
	for _, c := range codings {
		if c.name != "gzip" && c.name != "zstd" {
			continue
		}
		got, err := undo(u, c.name, append(c.encode(plain[:2000]), c.encode(plain[2000:])...))
		if err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s in two parts: %d bytes and %v", c.name, len(got), err)
		}
	}
}

// TestLimit: the limit is the largest that is undone.
func TestLimit(t *testing.T) {
	for _, limit := range []int{1, 100, 4096, outputStep, 3*outputStep + 1, 1 << 20} {
		u := under(t, limit)
		for _, c := range codings {
			for _, size := range []int{0, 1, limit - 1, limit, limit + 1, 2 * limit} {
				plain, want := bytes.Repeat([]byte("a"), size), error(nil)
				if size > limit {
					want = ErrLarge
				}
				got, err := undo(u, c.name, c.encode(plain))
				if !errors.Is(err, want) || err == nil && !bytes.Equal(got, plain) {
					t.Errorf("%s: %d bytes under a limit of %d: %d bytes and %v, want %v", c.name, size, limit, len(got), err, want)
				}
			}
		}
	}
}

// TestWorkers: a body waits for a worker as long as its context lets it, and free makes room once, however often called.
func TestWorkers(t *testing.T) {
	plain, u := chat(5000), under(t, 1<<20)
	body := codings[0].encode(plain)
	_, free, err := u.Body(context.Background(), "gzip", body)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if got, _, err := u.Body(ctx, "gzip", body); !errors.Is(err, ErrBusy) || !errors.Is(err, context.DeadlineExceeded) || got != nil {
		t.Errorf("a second body of one worker: %v", err)
	}
	if got, _, err := u.Body(ctx, "identity", plain); err != nil || &got[0] != &plain[0] {
		t.Errorf("a plain body waits for nothing: %v", err)
	}
	free()
	free()
	for range 2 {
		if got, err := undo(u, "gzip", body); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("once the worker is free: %v", err)
		}
	}
	if _, _, err := u.Body(ctx, "gzip", body); !errors.Is(err, ErrBusy) {
		t.Errorf("out of time: %v", err)
	}
	if len(u.turn) != 0 {
		t.Errorf("%d turns were not ended", len(u.turn))
	}
}

// TestSteadyState: bodies of a usual size are undone in memory that stays. The least of several times, as a pool may
// lose a decoder.
func TestSteadyState(t *testing.T) {
	plain, u := chat(128<<10), under(t, 32<<20)
	for _, c := range codings {
		body := c.encode(plain)
		least := uint64(1 << 40)
		for range 30 {
			least = min(least, allocated(func() {
				_, free, err := u.Body(context.Background(), c.name, body)
				if free(); err != nil {
					t.Fatal(err)
				}
			}))
		}
		if least > 4<<10 {
			t.Errorf("%s: %d bytes allocated for each body", c.name, least)
		}
	}
}
