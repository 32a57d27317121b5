package prompt

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// span is a stretch of the body, from start up to but not including end. A JSON value is never empty, so the
// zero span stands for an absent one.
type span struct{ start, end int }

// scanner walks JSON text without recursion or memory of its own. A failure is sticky: it sets reason and
// moves to the end, where every further step fails at once. The end of a partial text is none: all that is
// open there is left without what is missing (cut.go).
type scanner struct {
	b       []byte
	i       int
	depth   int // containers open
	reason  Reason
	partial bool // b may be cut
	cut     bool // and was, inside its outermost value
	begun   span // of a value that was cut inside a string: its beginning, as if a quote stood behind
}

func (s *scanner) reset(b []byte, partial bool) { *s = scanner{b: b, partial: partial} }

func (s *scanner) fail(r Reason) {
	if s.reason == ReasonNone {
		s.reason = r
	}
	s.i = len(s.b)
}

// of returns the bytes of a span.
func (s *scanner) of(v span) []byte { return s.b[v.start:v.end] }

// peek skips whitespace and returns the byte that follows; 0 at the end.
func (s *scanner) peek() byte {
	for ; s.i < len(s.b); s.i++ {
		if c := s.b[s.i]; c > ' ' || class[c] != space {
			return c
		}
	}
	return 0
}

// enter steps into the object or array whose first byte peek returned. What is stepped into nests 7 deep at
// most (a tool's result in a body that is cut); the depth of all else is checked where it is skipped.
func (s *scanner) enter() {
	s.i++
	s.depth++
}

// more reports whether the container that ends with end has an element after its first n, and stands at it;
// otherwise it leaves the container.
func (s *scanner) more(end byte, n int) bool {
	c := s.peek()
	if c == 0 {
		s.end()
		return false
	}
	if c == end && s.reason == ReasonNone {
		s.i++
		s.depth--
		return false
	}
	if n > 0 {
		if c != ',' {
			s.fail(ReasonNotJSON)
			return false
		}
		s.i++
		c = s.peek()
	}
	if c == 0 {
		s.end()
	}
	return s.i < len(s.b)
}

// key reads a member's name and its colon. A name with escapes means the same: it is decoded into scratch, and
// cut where that ends.
func (s *scanner) key(scratch []byte) []byte {
	if s.peek() != '"' {
		s.fail(ReasonNotJSON)
		return nil
	}
	raw := s.of(s.str())
	switch s.peek() {
	case ':':
	case 0:
		s.end()
		return nil
	default:
		s.fail(ReasonNotJSON)
		return nil
	}
	s.i++
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	n, _ := decode(scratch, raw)
	return scratch[:n]
}

// object scans an object and puts where the members of these names stand into v. A string among the first open of them that
// is cut counts as far as it came.
func (s *scanner) object(names []string, v []span, open int) {
	var scratch [keyBytes]byte
	s.enter()
	for n := 0; s.more('}', n); n++ {
		key := s.key(scratch[:])
		i := len(names) - 1
		for i >= 0 && string(key) != names[i] {
			i--
		}
		switch {
		case i < 0:
			s.value()
		case i < open:
			v[i] = s.open()
		default:
			v[i] = s.value()
		}
	}
}

// str reads the string that starts at i and returns what stands between its quotes. Names, and JSON inside a
// string with its many escaped quotes, are walked word by word; all else leaps from quote to quote. A quote
// ends the string unless an odd number of backslashes stands before it; each run of them is counted once.
func (s *scanner) str() span {
	b, start := s.b, s.i+1
	at := start
	for clean := 0; clean < 2 && len(b)-at >= 8; {
		x := binary.LittleEndian.Uint64(b[at:])
		found := zeros(x^'"'*ones) | zeros(x^'\\'*ones)
		if found == 0 {
			at += 8
			clean++
			continue
		}
		at += bits.TrailingZeros64(found) / 8
		if b[at] == '"' {
			s.i = at + 1
			return span{start, at}
		}
		if at += 2; at > len(b) || b[at-1] != '"' {
			break
		}
		clean = 0
	}
	for at <= len(b) {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			break
		}
		end := at + n
		run := end
		for run > at && b[run-1] == '\\' {
			run--
		}
		at = end + 1
		if (end-run)%2 == 0 {
			s.i = at
			return span{start, end}
		}
	}
	s.i = len(s.b)
	s.end()
	return span{}
}

// value skips one JSON value of any kind and returns where it stands; nowhere if it is cut.
func (s *scanner) value() span {
	s.peek()
	start := s.i
	var objects uint64 // a stack of bits, 1 for an object: MaxDepth fits in 64
	for open := 0; s.i < len(s.b); {
		switch c := s.b[s.i]; class[c] {
		case quote:
			s.str()
		case opener:
			if open++; s.depth+open > MaxDepth {
				s.fail(ReasonDepth)
				return span{}
			}
			objects = objects<<1 | uint64(c>>5&1)
			s.i++
		case closer:
			if open == 0 || objects&1 != uint64(c>>5&1) {
				s.fail(ReasonNotJSON)
				return span{}
			}
			open--
			objects >>= 1
			s.i++
		case scalar:
			s.scalar()
		default: // whitespace, comma or colon
			if open == 0 {
				s.fail(ReasonNotJSON)
				return span{}
			}
			s.i++
		}
		if open == 0 && s.reason == ReasonNone {
			if s.partial && s.i == len(s.b) {
				return s.last(start)
			}
			return span{start, s.i}
		}
	}
	s.end()
	return span{}
}

// scalar skips a number or literal and returns its bytes.
func (s *scanner) scalar() []byte {
	start := s.i
	for s.i < len(s.b) && class[s.b[s.i]] == scalar {
		s.i++
	}
	return s.b[start:s.i]
}

// The classes of bytes outside strings.
const (
	scalar uint8 = iota // part of a number or literal
	space
	between // comma, colon
	quote
	opener
	closer
)

var class = [256]uint8{
	' ': space, '\t': space, '\n': space, '\r': space,
	',': between, ':': between, '"': quote,
	'{': opener, '[': opener, '}': closer, ']': closer,
}
