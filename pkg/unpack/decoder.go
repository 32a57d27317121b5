package unpack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// maxWindow is the window of zstd that a receiver must take and a sender may not pass (RFC 9659, section 3).
const maxWindow = 8 << 20

// decoder is what a worker needs, kept from one body to the next. Its readers are made when first needed.
type decoder struct {
	in    input
	bytes *bufio.Reader // of in, for those that read byte by byte
	gzip  *gzip.Reader
	zlib  io.ReadCloser
	flate io.ReadCloser
	br    *brotli.Reader
	zstd  *zstd.Decoder
	out   []byte
	taken int // of the budget, for out
}

// decode undoes coding into d.out.
func (d *decoder) decode(ctx context.Context, u *Unpacker, coding string, body []byte) ([]byte, error) {
	d.in = input{ctx, body}
	r, err := d.open(coding, body)
	if err == nil {
		err = d.read(u, r, len(body))
	}
	if coding == "br" && body[0]&0x0D == 0x0D {
		d.br = nil // a window of 8 or 16 MiB (RFC 7932, section 9.1) is not kept
	}
	switch {
	case err == nil, errors.Is(err, ErrLarge), errors.Is(err, ErrBusy):
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("%s: %w", coding, ErrCut)
	default:
		err = fmt.Errorf("%w: %s: %w", ErrCoding, coding, err)
	}
	return d.out, err
}

// open returns the reader of a coding, set to the start of d.in.
func (d *decoder) open(coding string, body []byte) (r io.Reader, err error) {
	d.out = d.out[:0]
	if d.bytes == nil {
		d.bytes = bufio.NewReaderSize(nil, inputStep)
	}
	d.bytes.Reset(&d.in)
	switch coding {
	case "deflate":
		return d.deflate(zlibHeader(body))
	case "br":
		if d.br == nil {
			d.br = brotli.NewReader(nil)
		}
		return d.br, d.br.Reset(&d.in)
	case "zstd":
		if d.zstd == nil {
			d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(maxWindow))
			if err != nil {
				return nil, err
			}
		}
		return d.zstd, d.zstd.Reset(&d.in)
	}
	if d.gzip == nil {
		d.gzip = new(gzip.Reader)
	}
	return d.gzip, d.gzip.Reset(d.bytes)
}

// deflate is zlib by the standard (RFC 9110, section 8.4.1.2), and bare deflate by the clients that leave its header out.
func (d *decoder) deflate(wrapped bool) (r io.Reader, err error) {
	switch {
	case !wrapped && d.flate == nil:
		d.flate = flate.NewReader(d.bytes)
		return d.flate, nil
	case !wrapped:
		return d.flate, d.flate.(flate.Resetter).Reset(d.bytes, nil)
	case d.zlib == nil:
		d.zlib, err = zlib.NewReader(d.bytes)
		return d.zlib, err
	}
	return d.zlib, d.zlib.(zlib.Resetter).Reset(d.bytes, nil)
}

// zlibHeader reports whether body starts as zlib does (RFC 1950, section 2.2). Bare deflate does not: it would be a
// stored block whose padding is not zero.
func zlibHeader(body []byte) bool {
	return len(body) >= 2 && body[0]&0x0F == 8 && (uint(body[0])<<8|uint(body[1]))%31 == 0
}

// read fills d.out from r to its end, and sees that nothing follows it.
func (d *decoder) read(u *Unpacker, r io.Reader, size int) error {
	if err := d.grow(u, min(u.limit, max(512, firstFactor*size))); err != nil {
		return err
	}
	for {
		if err := d.in.ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", ErrBusy, err)
		}
		room := d.out[len(d.out):min(cap(d.out), len(d.out)+outputStep)]
		var over [1]byte // a byte beyond the limit tells that the body passes it
		if len(d.out) == u.limit {
			room = over[:]
		}
		n, err := r.Read(room)
		if n > 0 && len(d.out) == u.limit {
			return ErrLarge
		}
		d.out = d.out[:len(d.out)+n]
		if err == io.EOF {
			return d.ended()
		}
		if err != nil {
			return err
		}
		if len(d.out) == cap(d.out) && len(d.out) < u.limit {
			if err := d.grow(u, min(u.limit, 2*cap(d.out))); err != nil {
				return err
			}
		}
	}
}

// ended is the error of a body that goes on behind the end of its data.
func (d *decoder) ended() error {
	if len(d.in.rest) > 0 || d.bytes.Buffered() > 0 {
		return errors.New("more follows its end")
	}
	return nil
}

// grow makes room for size bytes in all. The budget holds the old copy and the new one until the old one is let go.
func (d *decoder) grow(u *Unpacker, size int) error {
	if cap(d.out) >= size {
		return nil
	}
	if !u.take(size) {
		return fmt.Errorf("%w: %d bytes", ErrBusy, size)
	}
	out := make([]byte, len(d.out), size)
	copy(out, d.out)
	u.take(-d.taken)
	d.out, d.taken = out, size
	return nil
}
