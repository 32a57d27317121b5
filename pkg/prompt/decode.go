package prompt

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// mark starts every tag of the canonical stream. It is no byte of UTF-8, so only a malformed string holds it.
const mark = 0xFF

const (
	markByte      = 0x00 // after mark: a byte FF of the string
	markSurrogate = 0x01 // after mark: a surrogate without its other half, in two bytes
)

// maxStep is the room that one step of decode may need.
const maxStep = 8

// decode writes what a JSON string's raw text stands for into dst, as far as dst reaches, and returns the bytes
// written and those used of raw. Both are above zero if raw is not empty and dst has maxStep bytes.
func decode(dst, raw []byte) (n, used int) {
	i := 0
	for i < len(raw) && n <= len(dst)-maxStep {
		switch c := raw[i]; {
		case c == '\\' && i+1 < len(raw) && simple[raw[i+1]] != 0:
			dst[n] = simple[raw[i+1]]
			i, n = i+2, n+1
			continue
		case c == '\\' || c == mark:
			out, u := special(dst[n:n+maxStep], raw[i:])
			i, n = i+u, n+out
			continue
		}
		if len(raw)-i >= 8 {
			x := binary.LittleEndian.Uint64(raw[i:])
			binary.LittleEndian.PutUint64(dst[n:], x)
			if found := zeros(x^'\\'*ones) | zeros(x^mark*ones); found != 0 {
				k := bits.TrailingZeros64(found) / 8
				i, n = i+k, n+k
				continue
			}
			i, n = i+8, n+8
		}
		run := plain(raw[i:min(len(raw), i+len(dst)-n)])
		i, n = i+len(run), n+copy(dst[n:], run)
	}
	return n, i
}

// plain returns the start of raw that stands for itself.
func plain(raw []byte) []byte {
	if i := bytes.IndexByte(raw, '\\'); i >= 0 {
		raw = raw[:i]
	}
	if i := bytes.IndexByte(raw, mark); i >= 0 {
		raw = raw[:i]
	}
	return raw
}

// ones times a byte is a word of that byte.
const ones = 0x0101010101010101

// zeros has the top bit set in the first of x's bytes, from the lowest, that is zero; it is zero if none is. A
// borrow may set it in bytes above the first as well, never below.
func zeros(x uint64) uint64 { return (x - ones) &^ x & (0x80 * ones) }

// special writes what the \u escape or mark at the start of raw stands for, and returns the bytes written and
// used. A malformed escape is taken as it stands.
func special(dst, raw []byte) (n, used int) {
	_ = dst[maxStep-1]
	if raw[0] == mark {
		dst[0], dst[1] = mark, markByte
		return 2, 1
	}
	r := unit(raw)
	switch {
	case r < 0:
		dst[0] = raw[0]
		return 1, 1
	case r >= 0x800 && r&^0x7FF != 0xD800:
		dst[0], dst[1], dst[2] = 0xE0|byte(r>>12), 0x80|byte(r>>6&0x3F), 0x80|byte(r&0x3F)
		return 3, 6
	case r < 0x800:
		return utf8.EncodeRune(dst, r), 6
	case r < 0xDC00:
		if low := unit(raw[6:]); low&^0x3FF == 0xDC00 {
			return utf8.EncodeRune(dst, (r-0xD800)<<10+(low-0xDC00)+0x10000), 12
		}
	}
	dst[0], dst[1], dst[2], dst[3] = mark, markSurrogate, byte(r>>8), byte(r)
	return 4, 6
}

// unit reads a \uXXXX escape; below zero if none stands at the start of raw.
func unit(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	return hex[raw[2]]<<12 | hex[raw[3]]<<8 | hex[raw[4]]<<4 | hex[raw[5]]
}

// simple maps the letter of a two-byte escape to what it stands for.
var simple = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hex maps a hexadecimal digit to its value, any other byte to -1, which stays below zero shifted or joined.
var hex = func() (t [256]rune) {
	for i := range t {
		t[i] = -1
	}
	for i, c := range []byte("0123456789abcdef") {
		t[c] = rune(i)
	}
	for i, c := range []byte("ABCDEF") {
		t[c] = rune(10 + i)
	}
	return t
}()
