package prompt

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"
)

// formed is an escape that JSON knows, or a backslash that begins none.
var formed = regexp.MustCompile(`\\(["\\/bfnrt]|u[0-9a-fA-F]{4})|\\`)

// lax is the reference's decoded for any text: a backslash that begins no escape stands for itself.
func lax(text string) (out []byte) {
	for _, at := range formed.FindAllStringIndex(text, -1) {
		if at[1]-at[0] == 1 {
			out = append(decoded([]byte(`"`+text[:at[0]]+`"`)), '\\')
			return append(out, lax(text[at[1]:])...)
		}
	}
	return decoded([]byte(`"` + text + `"`))
}

// holdDecode decodes a text at once and in steps of room bytes, and holds both against the reference.
func holdDecode(t *testing.T, text string, room int) {
	t.Helper()
	want := lax(text)
	for _, size := range []int{len(text)*2 + maxStep, maxStep + room} {
		dst := make([]byte, size)
		var got []byte
		for raw := []byte(text); len(raw) > 0; {
			n, used := decode(dst, raw)
			if n == 0 || used == 0 {
				t.Fatalf("%q: %d bytes written, %d used, with room for %d", raw, n, used, size)
			}
			if used < len(raw) && n <= size-maxStep {
				t.Fatalf("%q: %d of %d bytes written, and yet %q is left", raw, n, size, raw[used:])
			}
			got, raw = append(got, dst[:n]...), raw[used:]
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%q in steps of %d stands for %q, want %q", text, size, got, want)
		}
	}
}

// pieces are what may stand beside an escape: others of each length and kind, lower and upper case, malformed ones at
// each place, and plain text of all kinds of lengths.
var pieces = []string{
	``, `\u0000`, `\u007f`, `\u0080`, `\u07FF`, `\u0800`, `\ucfff`, `\uD000`, `\ud7ff`, `\ud800`, `\uDBFF`, `\udc00`, `\udfff`, `\ue000`, `\uffff`,
	`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `"`, `u`, " ", "/", "é", "中", "😀", "\xff", "\xfe", "\x00",
	"12345", "1234567", "12345678", "123456789", strings.Repeat("plain", 5), strings.Repeat("plain", 12), "1234\xff678",
	`\`, `\u`, `\u1`, `\u12`, `\u123`, `\ug000`, `\u0g00`, `\u00G0`, `\u000g`, `\u/000`, `\u0:00`, "\\u00@0", "\\u000`", "\\u\x10000", "\\u\xff000", "\\u0\xb000",
	`\U0041`, `\x41`, `\u 041`, `\ud83d\ude00`, `\uD83D\uDE00`, `\ud83d\n`, `\ud83d\u00e9`,
}

// TestEveryEscape holds every escape, in both cases, alone and in a run of all, and each eleventh beside pieces.
func TestEveryEscape(t *testing.T) {
	var run strings.Builder
	dst := make([]byte, maxStep)
	for r := range 0x10000 {
		want := []byte(string(rune(r)))
		if utf16.IsSurrogate(rune(r)) {
			want = []byte{mark, markSurrogate, byte(r >> 8), byte(r)}
		}
		for _, format := range []string{`\u%04x`, `\u%04X`} {
			e := fmt.Sprintf(format, r)
			if n, used := decode(dst, []byte(e)); used != len(e) || !bytes.Equal(dst[:n], want) {
				t.Fatalf("%s stands for %q, %d bytes used; want %q", e, dst[:n], used, want)
			}
			run.WriteString(e)
			if r%11 == 0 {
				holdDecode(t, pieces[r/11%len(pieces)]+e+pieces[r/11/len(pieces)%len(pieces)]+e+e, r%9)
			}
		}
	}
	holdDecode(t, run.String(), 3)
}

// TestEscapesBesideOthers holds every two pieces, many threes, and long draws of them.
func TestEscapesBesideOthers(t *testing.T) {
	for i, a := range pieces {
		for j, b := range pieces {
			holdDecode(t, a+b, i%9)
			if i%9 == j%9 {
				for k, c := range pieces {
					holdDecode(t, a+b+c, (j+k)%12)
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(31, 32))
	for range 1000 {
		var text strings.Builder
		for range r.IntN(60) {
			text.WriteString(pieces[r.IntN(len(pieces))])
		}
		holdDecode(t, text.String(), r.IntN(40))
	}
}

// TestEscapesAcrossBuffers: the encoder's buffer ends at each byte of a run of escapes.
func TestEscapesAcrossBuffers(t *testing.T) {
	var valid strings.Builder
	for _, p := range pieces {
		if len(formed.FindString(p)) > 1 {
			valid.WriteString(p + "é" + p + p)
		}
	}
	size := len(encoder{}.buf)
	for short := range 300 {
		fill := strings.Repeat("x", short%10) + strings.Repeat(`123456789\n`, (size-short)/10)
		compare(t, APICompletions, "", []byte(`{"prompt":"`+fill+valid.String()+`"}`))
	}
}

// FuzzDecode holds any raw text against the reference.
func FuzzDecode(f *testing.F) {
	for i, p := range pieces {
		f.Add(uint8(i), []byte(p+`\u4f60`+p))
	}
	f.Fuzz(func(t *testing.T, room uint8, raw []byte) { holdDecode(t, string(raw), int(room)) })
}
