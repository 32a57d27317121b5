// Package unpack undoes the content-encoding of a request body in a copy, for reading only: what goes to the replica
// is what the client sent.
//
// A few bytes may stand for gigabytes, so nothing is believed of what they say about themselves. What one body may
// cost:
//
//	memory  its copy, which grows as data comes, to the limit at most, each growth asked of the caller's budget
//	        first; while it grows, old and new copy count both. Beside that the window that its coding looks back
//	        on: 32 KiB (gzip, deflate), at most 8 MiB (zstd: RFC 9659) or 16 MiB (br: RFC 7932)
//	time    what the caller's context allows. It is looked at every inputStep bytes read and outputStep bytes
//	        written, so bytes that stand for nothing at all end as those do that stand for too much
//
// As many bodies are undone at once as there are workers; the others wait. So what a worker may hold and no budget counts,
// 25 MiB at most and 13 MiB between bodies (the windows of br and zstd, and its last copy), counts once a worker, and bombs
// leave the processors that are no workers alone.
//
// One coding is undone. Two in a row are refused unread: no client is known to send them, and a bomb of bombs would
// cost a limit for each.
package unpack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// Why a body is not undone, wrapped by the errors of Body.
var (
	ErrCoding = errors.New("content-encoding cannot be undone") // unknown, several, or the data is not of it
	ErrCut    = errors.New("data ends early")                   // but is sound as far as it goes
	ErrLarge  = errors.New("larger than the limit")
	ErrBusy   = errors.New("no memory or no time for it now")
)

const (
	inputStep  = 16 << 10
	outputStep = 64 << 10

	// firstFactor is the size of the first copy over that of the body: JSON shrinks to a third or a quarter.
	firstFactor = 4

	// keepBytes bounds the copy that a worker keeps for the next body: most prompts fit.
	keepBytes = 1 << 20
)

// Unpacker undoes content-encodings. Safe for concurrent use.
type Unpacker struct {
	limit int
	take  func(n int) bool
	turn  chan struct{} // holds one for each body being undone
	idle  sync.Pool     // of *decoder
}

// New returns an Unpacker of so many workers, at least 1, and of limit bytes for one body undone. take asks a budget
// for n bytes; below zero n gives back, and its answer is not looked at.
func New(workers, limit int, take func(n int) bool) *Unpacker {
	return &Unpacker{
		limit: limit,
		take:  take,
		turn:  make(chan struct{}, workers),
		idle:  sync.Pool{New: func() any { return new(decoder) }},
	}
}

// Body returns body with the one coding undone that the value of its content-encoding header names. Without any it is
// body itself, as it is if the header is wrong and body is plain JSON. Otherwise it is a copy that is good until free,
// which must be called, soon, as a worker waits for it; it may be called again, and is never nil.
//
// An error is ErrCoding, ErrCut, ErrLarge or ErrBusy. With ErrCut plain is what the data stands for as far as it goes, or
// nearly; with the others it is nil.
func (u *Unpacker) Body(ctx context.Context, header string, body []byte) (plain []byte, free func(), err error) {
	coding, err := single(header)
	if err != nil {
		return nil, func() {}, err
	}
	if coding == "" || len(body) == 0 {
		return body, func() {}, nil
	}
	select {
	case u.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, func() {}, fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
	}
	d := u.idle.Get().(*decoder)
	free = func() {
		if d != nil {
			u.done(d)
			d = nil
		}
	}
	returned := false
	defer func() {
		if !returned { // a library panicked: its state is not used again
			*d = decoder{taken: d.taken}
			free()
		}
	}()
	plain, err = d.decode(ctx, u, coding, body)
	returned = true
	switch {
	case err == nil:
		return plain, free, nil
	case looksJSON(body) && (errors.Is(err, ErrCoding) || errors.Is(err, ErrCut)):
		free()
		return body, free, nil
	case errors.Is(err, ErrCut):
		return plain, free, err
	}
	free()
	return nil, free, err
}

// done takes a decoder back, and ends its turn.
func (u *Unpacker) done(d *decoder) {
	u.take(-d.taken)
	d.taken = 0
	d.in = input{}
	if cap(d.out) > keepBytes {
		d.out = nil
	}
	u.idle.Put(d)
	<-u.turn
}

var known = []string{"gzip", "x-gzip", "deflate", "br", "zstd"}

// single returns the coding that a content-encoding header names, in lower case; "" for none.
func single(header string) (coding string, err error) {
	for name := range strings.SplitSeq(header, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" || name == "identity" {
			continue
		}
		if coding != "" {
			return "", fmt.Errorf("%w: several in a row", ErrCoding)
		}
		if !slices.Contains(known, name) {
			return "", fmt.Errorf("%w: unknown: %.20q", ErrCoding, name)
		}
		coding = name
	}
	return coding, nil
}

// looksJSON reports whether body starts as a JSON object does.
func looksJSON(body []byte) bool {
	text := strings.TrimLeft(strings.TrimPrefix(string(body[:min(len(body), 64)]), "\xEF\xBB\xBF"), " \t\r\n")
	return strings.HasPrefix(text, "{")
}

// input is the body as a decoder reads it.
type input struct {
	ctx  context.Context
	rest []byte
}

func (in *input) Read(p []byte) (int, error) {
	if err := in.ctx.Err(); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	if len(in.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), inputStep)], in.rest)
	in.rest = in.rest[n:]
	return n, nil
}
