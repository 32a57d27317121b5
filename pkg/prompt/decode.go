package prompt

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
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
	i, near := 0, 1 // near is the words to look through before the leap to the next escape
text:
	for i < len(raw) && n <= len(dst)-maxStep {
		switch c := raw[i]; {
		case c == '\\' && i+1 < len(raw) && simple[raw[i+1]] != 0:
			dst[n] = simple[raw[i+1]]
			i, n = i+2, n+1
			continue
		case c == '\\':
			out, u := escapes(dst[n:], raw[i:])
			if u == 0 { // malformed: taken as it stands
				dst[n] = c
				out, u = 1, 1
			}
			i, n = i+u, n+out
			continue
		case c == mark:
			dst[n], dst[n+1] = mark, markByte
			i, n = i+1, n+2
			continue
		}
		for words := near; words > 0 && len(raw)-i >= 8 && n <= len(dst)-8; words-- {
			x := binary.LittleEndian.Uint64(raw[i:])
			binary.LittleEndian.PutUint64(dst[n:], x)
			if found := zeros(x^'\\'*ones) | zeros(x^mark*ones); found != 0 {
				k := bits.TrailingZeros64(found) / 8
				i, n = i+k, n+k
				continue text
			}
			i, n = i+8, n+8
		}
		run := plain(raw[i:min(len(raw), i+len(dst)-n)])
		i, n = i+len(run), n+copy(dst[n:], run)
		if near = 1; len(run) < 24 { // two words more cost less than a leap as short
			near = 3
		}
	}
	return n, i
}

// escapes writes what a run of escapes at the start of raw stands for, as far as dst reaches, and returns the bytes
// written and used; none if raw starts with nothing that it reads. A plain byte between two escapes, as the space
// between words of Russian, is part of the run. Both slices are cut from the front by constants: that spares checks
// of bounds, which are a third of the time of so short a loop.
func escapes(dst, raw []byte) (n, used int) {
	d, r := dst, raw
	for len(d) >= maxStep && len(r) >= 6 {
		if binary.LittleEndian.Uint16(r) != '\\'|'u'<<8 {
			if c := simple[r[1]]; r[0] == '\\' && c != 0 {
				d[0] = c
				d, r = d[1:], r[2:]
			} else if r[0] != mark && r[1] == '\\' { // a plain byte: two backslashes are an escape
				d[0] = r[0]
				d, r = d[1:], r[1:]
			} else {
				break
			}
			continue
		}
		u := nibbles[0][r[2]] + nibbles[1][r[3]] + nibbles[2][r[4]] + nibbles[3][r[5]]
		if u&(twoBytes|surrogate|7*malformed) == 0 {
			binary.LittleEndian.PutUint32(d, u)
			d, r = d[3:], r[6:]
			continue
		}
		if u >= malformed {
			break
		}
		switch {
		case u&surrogate != 0:
			half := unit(r)
			if c := utf16.DecodeRune(half, unit(r[6:])); c != utf8.RuneError {
				utf8.EncodeRune(d, c)
				r = r[6:]
			} else {
				d[0], d[1], d[2], d[3] = mark, markSurrogate, byte(half>>8), byte(half)
			}
			d = d[4:]
		case u&0x1E00 != 0: // 0x80 or more: E0 80|y 80|x becomes C0|y 80|x, as 0x40 makes the second byte the first
			binary.LittleEndian.PutUint16(d, uint16(u>>8+0x40))
			d = d[2:]
		default: // E0 80|y 80|x with one bit of y becomes y x
			d[0] = byte(u>>2&0x40 | u>>16&0x3F)
			d = d[1:]
		}
		r = r[6:]
	}
	return len(dst) - len(d), len(raw) - len(r)
}

// What the sum of the entries of nibbles says about an escape, above its 24 bits of UTF-8.
const (
	twoBytes  = 1 << 26 // below 0x800, so that its UTF-8 is two bytes at most: one half from either of the first two digits
	surrogate = 1 << 28 // likewise
	malformed = 1 << 29 // times the digits that are none
)

// nibbles maps each of the four digits of an escape to its part of the three bytes of UTF-8, the first byte lowest.
var nibbles = func() (t [4][256]uint32) {
	for c, r := range hex {
		if r < 0 {
			t[0][c], t[1][c], t[2][c], t[3][c] = malformed, malformed, malformed, malformed
			continue
		}
		v := uint32(r)
		t[0][c], t[1][c], t[2][c], t[3][c] = 0xE0|v, 0x80<<8|v<<10, 0x80<<16|v&3<<20|v>>2<<8, v<<16
		switch v {
		case 0:
			t[0][c] |= twoBytes / 2
		case 0xD:
			t[0][c] |= surrogate / 2
		}
		if v < 8 {
			t[1][c] |= twoBytes / 2
		} else {
			t[1][c] |= surrogate / 2
		}
	}
	return t
}()

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
