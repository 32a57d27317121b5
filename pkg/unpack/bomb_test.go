package unpack

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"testing"
)

// zeros is a body of n zeros, and as much smaller as each coding can make it: gzip and deflate 1,000 times, br and zstd
// 30,000 times and more.
func zeros(c coding, n int) []byte {
	if c.name != "zstd" {
		return c.encode(make([]byte, n))
	}
	b := []byte{0x28, 0xB5, 0x2F, 0xFD, 0, 7 << 3} // a window of 128 KiB
	for ; n > 128<<10; n -= 128 << 10 {
		b = append(b, 0x02, 0, 0x10, 0) // a zero 128 Ki times
	}
	return append(b, 0x03, 0, 0x10, 0)
}

// TestBombs is mlflow#24784: the limit stops them all, and a budget that has less stops them before.
func TestBombs(t *testing.T) {
	const limit = 64 << 10
	u := under(t, limit)
	small := &budget{}
	small.size.Store(limit / 4)
	poor := New(1, limit, small.take)
	for _, c := range codings {
		size := 2 << 20
		if c.name == "zstd" {
			size *= 8 // a frame's header is a larger part of it
		}
		bomb := zeros(c, size)
		if ratio := size / len(bomb); ratio < 1000 || (c.name == "br" || c.name == "zstd") && ratio < 30_000 {
			t.Errorf("%s: a bomb of 1:%d is none", c.name, ratio)
		}
		if got, err := undo(u, c.name, bomb); !errors.Is(err, ErrLarge) || got != nil {
			t.Errorf("%s: %d bytes and %v", c.name, len(got), err)
		}
		for _, nested := range []string{c.name + ", " + c.name, c.name + ",gzip"} {
			if _, err := undo(u, nested, c.encode(bomb)); !errors.Is(err, ErrCoding) {
				t.Errorf("%s: %v", nested, err)
			}
		}
		if _, err := undo(poor, c.name, bomb); !errors.Is(err, ErrBusy) {
			t.Errorf("%s with a budget of %d: %v", c.name, limit/4, err)
		}
		if used, most := small.used.Load(), small.most.Load(); used != 0 || most > limit/4 {
			t.Errorf("%s: %d bytes of the budget out, %d at most of %d", c.name, used, most, limit/4)
		}
	}
}

// TestDeclaredSizes: a zstd frame that claims 1 EiB, or a window of 1 GiB and more, and a br that claims 16 MiB cost what
// they bring.
func TestDeclaredSizes(t *testing.T) {
	frame := func(head ...byte) []byte {
		return append(append([]byte{0x28, 0xB5, 0x2F, 0xFD}, head...), 0x21, 0, 0, 'x', 'y', 'z', '{') // a last raw block of 4
	}
	size := binary.LittleEndian.AppendUint64(nil, 1<<60)
	for name, c := range map[string]struct {
		coding string
		body   []byte
	}{
		"one segment of 1 EiB":           {"zstd", frame(append([]byte{0xE0}, size...)...)},
		"a window of 1 KiB and 1 EiB":    {"zstd", frame(append([]byte{0xC0, 0}, size...)...)},
		"a window of 1 GiB":              {"zstd", frame(0, 20<<3)},
		"the largest window":             {"zstd", frame(0, 0xFF)},
		"a dictionary":                   {"zstd", frame(1, 0, 7)},
		"16 MiB in one br block, 4 came": {"br", []byte{0x0F, 0xFC, 0xFF, 0xFF, 0xFF, 'x'}},
		"a skipped frame of 4 GiB":       {"zstd", []byte{0x50, 0x2A, 0x4D, 0x18, 0xFF, 0xFF, 0xFF, 0xFF}},
	} {
		u := under(t, 32<<20)
		if _, err := undo(u, c.coding, c.body); !errors.Is(err, ErrCoding) && !errors.Is(err, ErrCut) {
			t.Errorf("%s: %v", name, err)
		}
		if n := allocated(func() { undo(u, c.coding, c.body) }); n > 17<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
	sound := frame(0, 13<<3) // a window of 8 MiB, as large as may be
	if got, err := undo(under(t, 1<<20), "zstd", sound); err != nil || string(got) != "xyz{" {
		t.Errorf("a window of 8 MiB: %q and %v", got, err)
	}
}

// allocated is the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestManyBombs: a hundred at once stay within the budget and what two workers keep, which is 4 MiB each for
// br's usual window, as measured while they grow.
func TestManyBombs(t *testing.T) {
	const workers, limit = 2, 512 << 10
	b := &budget{}
	b.size.Store(3 * limit)
	var mu sync.Mutex
	var live uint64
	takes := 0
	u := New(workers, limit, func(n int) bool {
		mu.Lock()
		defer mu.Unlock()
		if takes++; takes%32 == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			live = max(live, m.HeapAlloc)
		}
		return b.take(n)
	})
	bombs := make([][]byte, len(codings))
	for i, c := range codings {
		bombs[i] = zeros(c, 1<<20)
	}
	runtime.GC()
	var start runtime.MemStats
	runtime.ReadMemStats(&start)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			if _, err := undo(u, codings[i%len(codings)].name, bombs[i%len(codings)]); !errors.Is(err, ErrLarge) && !errors.Is(err, ErrBusy) {
				t.Errorf("%s: %v", codings[i%len(codings)].name, err)
			}
		})
	}
	wg.Wait()
	if live == 0 || live > start.HeapAlloc+3*limit+workers*(5<<20) {
		t.Errorf("%d MiB live while they grew, %d before", live>>20, start.HeapAlloc>>20)
	}
	if used, most := b.used.Load(), b.most.Load(); used != 0 || most > 3*limit {
		t.Errorf("%d bytes of the budget did not come back, %d at most", used, most)
	}
}

// countdown is a context that ends when it was looked at so many times: a time limit without a clock.
type countdown struct {
	context.Context
	looks int
}

func (c *countdown) Err() error {
	if c.looks--; c.looks < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// hollow is n bytes and more of a deflate stream that stands for nothing: blocks of a Huffman code each, all empty.
func hollow(n int) []byte {
	var w bitWriter
	for len(w.out) < n {
		w.block(0)
	}
	w.block(1)
	w.put(0, 7) // to the end of the byte
	return w.out
}

type bitWriter struct {
	out  []byte
	acc  uint64
	fill int
}

func (w *bitWriter) put(v uint64, n int) {
	w.acc |= v << w.fill
	for w.fill += n; w.fill >= 8; w.fill -= 8 {
		w.out = append(w.out, byte(w.acc))
		w.acc >>= 8
	}
}

// block writes a dynamic block whose only symbol is its end: 256 lengths of zero, one of 1, one distance of none.
func (w *bitWriter) block(last uint64) {
	w.put(last, 1)
	w.put(2, 2)  // dynamic
	w.put(0, 5)  // 257 lengths
	w.put(0, 5)  // one distance
	w.put(14, 4) // 18 lengths of the code of lengths, in the order 16 17 18 0 8 7 9 6 10 5 11 4 12 3 13 2 14 1
	for _, length := range []uint64{0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2} {
		w.put(length, 3)
	}
	w.put(0, 1)      // 18: zeros,
	w.put(138-11, 7) // 138 of them
	w.put(0, 1)      // and
	w.put(118-11, 7) // 118
	w.put(3, 2)      // the end of the block has length 1
	w.put(1, 2)      // the distance none
	w.put(0, 1)      // the end of the block
}

// TestHollow: bytes that stand for nothing take time all the same, and the caller's context ends it.
func TestHollow(t *testing.T) {
	u := under(t, 1<<20)
	body := hollow(8 * inputStep)
	if got, err := undo(u, "deflate", body); err != nil || len(got) != 0 {
		t.Fatalf("%d bytes and %v", len(got), err)
	}
	ctx := &countdown{context.Background(), 4}
	got, free, err := u.Body(ctx, "deflate", body)
	if free(); !errors.Is(err, ErrBusy) || got != nil {
		t.Errorf("out of time: %v", err)
	}
	if left := len(u.turn); left != 0 {
		t.Errorf("%d turns were not ended", left)
	}
	bomb := codings[0].encode(bytes.Repeat([]byte("a"), 1<<20))
	_, free, err = u.Body(&countdown{context.Background(), 8}, "gzip", bomb)
	if free(); !errors.Is(err, ErrBusy) {
		t.Errorf("a bomb out of time: %v", err)
	}
}
