package unpack

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"testing"

	kgzip "github.com/klauspost/compress/gzip"
)

const fuzzLimit = 100_000

// standard is what the standard library makes of a body: ErrLarge if it is larger than fuzzLimit, errDamaged if it
// cannot be undone; false if the library does not know the coding.
func standard(coding string, body []byte) (plain []byte, err error, ok bool) {
	src := bytes.NewReader(body)
	var r io.Reader
	switch {
	case coding == "gzip":
		r, err = gzip.NewReader(src)
	case coding == "deflate" && zlibHeader(body):
		r, err = zlib.NewReader(src)
	case coding == "deflate":
		r = flate.NewReader(src)
	default:
		return nil, nil, false
	}
	if err != nil {
		return nil, errDamaged, true
	}
	plain, err = io.ReadAll(io.LimitReader(r, fuzzLimit+1))
	switch {
	case len(plain) > fuzzLimit:
		return nil, ErrLarge, true
	case err != nil || src.Len() > 0:
		return nil, errDamaged, true
	}
	return plain, nil, true
}

var errDamaged = errors.New("damaged")

// FuzzBody takes an input for a body of a coding, and for what a body of it stands for, which is then cut or damaged: it
// holds the first against the standard library, and the second against itself.
func FuzzBody(f *testing.F) {
	for i, c := range codings {
		for _, plain := range [][]byte{nil, []byte("a"), chat(3000), make([]byte, 2*fuzzLimit)} {
			f.Add(uint8(i), c.encode(plain), uint16(len(plain)/2))
		}
		f.Add(uint8(i), []byte(`{"model":"m","prompt":"x"}`), uint16(3))
		f.Add(uint8(i), hollow(300), uint16(9))
		f.Add(uint8(i), zeros(codings[4], 4*fuzzLimit), uint16(9))
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte, at uint16) {
		u, c := under(t, fuzzLimit), codings[int(which)%len(codings)]
		read := func(body []byte) ([]byte, error) {
			plain, free, err := u.Body(context.Background(), c.name, body)
			defer free()
			if unread := err != nil && !errors.Is(err, ErrCut); len(plain) > fuzzLimit && &plain[0] != &body[0] || unread && plain != nil {
				t.Errorf("%d bytes and %v", len(plain), err)
			}
			if err != nil && !errors.Is(err, ErrCoding) && !errors.Is(err, ErrCut) && !errors.Is(err, ErrLarge) {
				t.Errorf("error %v", err)
			}
			return bytes.Clone(plain), err
		}
		got, err := read(data)
		want, wantErr, known := standard(c.name, data)
		if plain := errors.Is(wantErr, errDamaged) && looksJSON(data); known && plain {
			want, wantErr = data, nil
		}
		// Of a body that is cut short of the limit the two may give up at different bytes.
		same := bytes.Equal(got, want) && errors.Is(err, ErrLarge) == errors.Is(wantErr, ErrLarge)
		strict := errors.Is(err, kgzip.ErrHeader) && wantErr == nil // bits that must be zero (RFC 1952, section 2.3.1.2)
		if known && len(data) > 0 && !strict && ((err == nil) != (wantErr == nil) || !same && !errors.Is(err, ErrCut)) {
			t.Errorf("%s: %d bytes and %v, and the standard library %d and %v", c.name, len(got), err, len(want), wantErr)
		}

		whole := c.encode(data)
		got, err = read(whole)
		if large := len(data) > fuzzLimit; large != errors.Is(err, ErrLarge) || !large && (err != nil || !bytes.Equal(got, data)) {
			t.Fatalf("%s: %d bytes come back as %d and %v", c.name, len(data), len(got), err)
		}
		cut := int(at) % len(whole)
		if got, err := read(whole[:cut]); cut > 0 && !errors.Is(err, ErrLarge) && (!errors.Is(err, ErrCut) || !bytes.HasPrefix(data, got)) {
			t.Errorf("%s cut at %d of %d: %d bytes and %v", c.name, cut, len(whole), len(got), err)
		}
		whole[cut] ^= byte(at>>8) | 1
		read(whole)
		if len(u.turn) != 0 {
			t.Errorf("%d turns were not ended", len(u.turn))
		}
	})
}
