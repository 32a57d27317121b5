package prompt

import (
	"github.com/cespare/xxhash/v2"

	"github.com/weirproxy/weir/pkg/chain"
)

// The tags of the canonical stream, each after a mark.
const (
	tagTools     = 'T'
	tagMessage   = 'M' // then the role
	tagName      = 'N'
	tagID        = 'I' // of a tool call, or of the call that a tool answers
	tagReasoning = 'R'
	tagTask      = 'K' // as DeepSeek's templates call it
	tagText      = 'X'
	tagMedia     = 'V' // then a hash (medium.go)
	tagReference = 'F' // then the name of a tool
	tagOption    = 'O' // then a name and what it says (options.go)
	tagCall      = 'C' // then the function's name
	tagArguments = 'A'
	tagStrict    = 'S' // of a tool
	tagDefer     = 'D' // likewise
	tagString    = '"'
	tagScalar    = '#'
)

// What a field may have for a tag that is none in the stream.
const (
	tagSystem    = 's' // a message whose role the body does not spell
	tagUser      = 'u'
	tagAssistant = 'a'
	tagTool      = 't'
	tagJoin      = 'j' // the value goes on with the one before it
	tagLine      = 'l' // and so it does after a line break
	tagRest      = 'r' // a text without its first line
)

// roleOf is the role of the messages that have one of these tags; "" for other tags.
func roleOf(tag byte) string {
	switch tag {
	case tagSystem:
		return "system"
	case tagUser:
		return "user"
	case tagAssistant:
		return "assistant"
	case tagTool:
		return "tool"
	}
	return ""
}

// sink is where the encoder's bytes go.
type sink uint8

const (
	toChain  sink = iota // hashed into the chain and counted
	toDigest             // hashed into digest: a medium takes part by its hash
	toCount              // counted only: the later prompts of a batch
)

// plainRun is the bytes from which a string without escapes is hashed where it stands rather than copied.
const plainRun = 256

// encoder writes the canonical stream. Short writes are gathered in buf, so that a body of many small or
// escaped pieces is hashed in long runs.
type encoder struct {
	to     sink
	hasher chain.Hasher
	digest xxhash.Digest
	bytes  int // written to the chain or counted, since begin
	media  int // media that may still count in full

	mediaOptions uint64 // a hash of what is said of all media; 0: nothing

	fill int // bytes of buf in use
	buf  [4096]byte
}

// begin starts a stream.
func (e *encoder) begin(to sink) { e.to, e.bytes, e.media, e.fill = to, 0, MaxMedia, 0 }

// tokens ends the stream and returns its length in tokens.
func (e *encoder) tokens() int {
	e.flush()
	return (e.bytes + chain.BytesPerToken - 1) / chain.BytesPerToken
}

func (e *encoder) flush() {
	e.write(e.buf[:e.fill])
	e.fill = 0
}

func (e *encoder) write(b []byte) {
	if e.to == toDigest {
		e.digest.Write(b) // never fails (xxhash.Digest)
		return
	}
	e.bytes += len(b)
	if e.to == toChain {
		e.hasher.Write(b)
	}
}

// room makes sure that buf takes n more bytes.
func (e *encoder) room(n int) {
	if e.fill > len(e.buf)-n {
		e.flush()
	}
}

func (e *encoder) tag(c byte) {
	e.room(2)
	e.buf[e.fill], e.buf[e.fill+1] = mark, c
	e.fill += 2
}

// short writes a short text that needs no decoding.
func (e *encoder) short(text string) {
	e.room(len(text))
	e.fill += copy(e.buf[e.fill:], text)
}

// text writes a string, given what stands between its quotes.
func (e *encoder) text(raw []byte) {
	if len(raw) >= plainRun {
		if run := plain(raw); len(run) >= plainRun {
			e.flush()
			e.write(run)
			raw = raw[len(run):]
		}
	}
	for len(raw) > 0 {
		e.room(maxStep)
		n, used := decode(e.buf[e.fill:], raw)
		e.fill += n
		raw = raw[used:]
	}
}

// value writes a value that should be a string; another is written as JSON, and null or none not at all.
func (e *encoder) value(raw []byte) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
	case raw[0] == '"':
		e.text(raw[1 : len(raw)-1])
	default:
		e.json(raw)
	}
}

// json writes a value token by token. Members alternate between name and value, so neither needs a tag.
func (e *encoder) json(raw []byte) {
	s := scanner{b: raw}
	for s.peek() != 0 {
		switch c := raw[s.i]; class[c] {
		case quote:
			e.tag(tagString)
			e.text(s.of(s.str()))
		case opener, closer:
			e.tag(c)
			s.i++
		case scalar:
			e.tag(tagScalar)
			e.text(s.scalar())
		default:
			s.i++
		}
	}
}
