package prompt

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/weirproxy/weir/pkg/chain"
)

// A medium takes part by a hash of its kind and of what names its content: a URL (inline data are one), data or the
// name of a file. What only describes it (detail, format, media_type, a file's name) does not, as the server keys its own
// cache by the content. A uuid takes the place of the content, as in vLLM. Of an object without any of those names all
// counts, whatever the order of its members; a member that it has twice counts twice there, and so it does in options.

// The kinds of media: tags of fields that are written as tagMedia and a hash.
const (
	tagImage  = 'i'
	tagVideo  = 'v'
	tagAudio  = 'o'
	tagFile   = 'f' // a file, or what is not known
	tagEmbeds = 'e' // embeddings in place of a text

	byUUID = 0x80 // with one of them: the value is the uuid
)

// contentKeys name a medium's content.
var contentKeys = [...]string{"url", "data", "file_data", "file_id"}

// medium writes a medium's hash, repeated over MediaTokens tokens, so that a chain stays as long as its tokens.
func (e *encoder) medium(kind byte, content uint64) {
	e.tag(tagMedia)
	sum := fold(fold(e.mediaOptions, uint64(kind)), content)
	e.flush()
	n := 8
	if e.media > 0 {
		e.media--
		n = MediaTokens * chain.BytesPerToken
	}
	for ; e.fill < n; e.fill += 8 {
		binary.LittleEndian.PutUint64(e.buf[e.fill:], sum)
	}
}

// contentHash hashes the members that name the content, or all of a value that has none of them.
func (e *encoder) contentHash(raw []byte) uint64 {
	if raw[0] != '{' {
		return e.hash(raw)
	}
	var v [len(contentKeys)]span
	s := scanner{b: raw}
	s.object(contentKeys[:], v[:], 0)
	sum, found := uint64(0), false
	for i, at := range v {
		switch value := s.of(at); {
		case len(value) == 0 || string(value) == "null":
		case i == 0:
			sum, found = e.hash(value), true // as if it stood without the object
		default:
			sum, found = fold(fold(sum, uint64(i)), e.hash(value)), true
		}
	}
	if !found {
		return e.hash(raw)
	}
	return sum
}

// hash hashes a value that has been scanned, whatever the order of the members of its objects.
func (e *encoder) hash(raw []byte) uint64 {
	e.flush()
	to := e.to
	e.to = toDigest
	s := scanner{b: raw}
	sum := e.hashValue(&s)
	e.to = to
	return sum
}

// hashValue recurses MaxDepth deep at most, as the value was scanned. Members are summed, so that their order does not matter.
func (e *encoder) hashValue(s *scanner) uint64 {
	sum := uint64(0)
	switch c := s.peek(); class[c] {
	case quote:
		return e.hashText(tagString, s.of(s.str()))
	case opener:
		s.enter()
		for n := 0; s.more(c+2, n); n++ { // ] and } are two behind [ and {
			if c == '[' {
				sum = fold(sum, e.hashValue(s))
				continue
			}
			if s.peek() != '"' { // only brackets have been checked
				s.fail(ReasonNotJSON)
				break
			}
			key := e.hashText(tagString, s.of(s.str()))
			if s.peek() != ':' {
				s.fail(ReasonNotJSON)
				break
			}
			s.i++
			sum += fold(key, e.hashValue(s))
		}
		return fold(uint64(c), sum)
	}
	return e.hashText(tagScalar, s.scalar())
}

// hashText hashes a text as it is decoded. buf is empty here: what fits there needs no digest.
func (e *encoder) hashText(tag byte, raw []byte) uint64 {
	if n, used := decode(e.buf[:], raw); used == len(raw) {
		return fold(uint64(tag), xxhash.Sum64(e.buf[:n]))
	}
	e.digest.Reset()
	e.text(raw)
	e.flush()
	return fold(uint64(tag), e.digest.Sum64())
}

// fold is one hash of two, in their order.
func fold(a, b uint64) uint64 {
	var both [16]byte
	binary.LittleEndian.PutUint64(both[:], a)
	binary.LittleEndian.PutUint64(both[8:], b)
	return xxhash.Sum64(both[:])
}
