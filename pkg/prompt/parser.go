package prompt

import (
	"bytes"
	"math"

	"github.com/weirproxy/weir/pkg/chain"
)

// Parser reads bodies. It keeps its scratch memory from one request to the next, bounded by MaxParts, and a
// body only until Parse returns. The zero value is ready. Not safe for concurrent use.
type Parser struct {
	scan   scanner
	enc    encoder
	fields []field // of the messages, in canonical order
	parts  []field // of the message being scanned: its content
	calls  []field // of the message being scanned: its tool calls
	broken bool    // the messages cannot be read, or have more than MaxParts parts

	model, salt string                       // of the last request: not made again while they stay the same
	name        [MaxNameBytes + maxStep]byte // scratch
	path        []byte                       // scratch
}

// members is where a body's members stand.
type members struct {
	model, salt, tools, prompt     span
	maxTokens, maxCompletionTokens span
	n, bestOf, stream              span
	messages                       bool // an array; its parts are in Parser.fields
}

// Parse fills dst from a request's path, its content-encoding header ("" if none) and its whole body, using
// the memory of dst.Chain again. It never fails: what it cannot read is estimated from its size, and
// dst.Reason says why. Time is linear in the body; nothing is allocated once the scratch memory has grown,
// except for a model or salt that differs from the last one.
func (p *Parser) Parse(dst *Prompt, path, encoding string, body []byte) {
	*dst = Prompt{Chain: dst.Chain[:0], Prompts: 1, Answers: 1}
	dst.API, p.path = apiOf(path, p.path)
	dst.Reason = p.read(dst, encoding, body)
	p.scan.reset(nil)
	if dst.Reason != ReasonNone {
		dst.Chain, dst.Exact, dst.Prompts = dst.Chain[:0], false, 1
		dst.Tokens = sizeTokens(body, dst.Reason == ReasonEncoding || looksJSON(body))
	}
}

func (p *Parser) read(dst *Prompt, encoding string, body []byte) Reason {
	switch {
	case dst.API == APIOther:
		return ReasonPath
	case len(body) == 0:
		return ReasonEmpty
	case !identity(encoding):
		return ReasonEncoding
	}
	p.scan.reset(bytes.TrimPrefix(body, bom))
	var m members
	if r := p.body(&m); r != ReasonNone {
		return r
	}
	dst.Stream = string(p.scan.of(m.stream)) == "true"
	if dst.MaxTokens = integer(p.scan.of(m.maxCompletionTokens)); dst.MaxTokens == 0 {
		dst.MaxTokens = integer(p.scan.of(m.maxTokens))
	}
	dst.Answers = integer(p.scan.of(m.n))
	if dst.API == APICompletions { // of best_of answers, n are returned
		dst.Answers = max(dst.Answers, integer(p.scan.of(m.bestOf)))
	}
	dst.Answers = min(max(dst.Answers, 1), MaxAnswers)
	if !p.text(&p.model, m.model) || !p.text(&p.salt, m.salt) {
		return ReasonShape
	}
	dst.Model = p.model
	prompt := m.prompt.end > 0 && (p.scan.b[m.prompt.start] == '"' || p.scan.b[m.prompt.start] == '[')
	switch {
	case m.messages && (dst.API == APIChat || !prompt):
		return p.chat(dst, m.tools)
	case prompt:
		return p.completion(dst, m.prompt)
	}
	return ReasonShape
}

// body scans the outermost object.
func (p *Parser) body(m *members) Reason {
	s := &p.scan
	if s.peek() != '{' {
		return ReasonNotJSON
	}
	s.enter()
	for n := 0; s.more('}', n); n++ {
		switch string(p.key()) {
		case "model":
			m.model = s.value()
		case "cache_salt":
			m.salt = s.value()
		case "messages":
			m.messages = p.messages()
		case "prompt":
			m.prompt = s.value()
		case "tools":
			m.tools = s.value()
		case "stream":
			m.stream = s.value()
		case "n":
			m.n = s.value()
		case "best_of":
			m.bestOf = s.value()
		case "max_tokens":
			m.maxTokens = s.value()
		case "max_completion_tokens":
			m.maxCompletionTokens = s.value()
		default:
			s.value()
		}
	}
	if s.peek() != 0 || s.i < len(s.b) {
		s.fail(ReasonNotJSON)
	}
	return s.reason
}

// keyBytes is room for the longest key that is known and one step more, so that a key cut there matches none.
const keyBytes = 32

func (p *Parser) key() []byte {
	return p.scan.key(p.name[:keyBytes])
}

// text sets *dst to the string at v, "" if there is none; false if it is longer than MaxNameBytes.
func (p *Parser) text(dst *string, v span) bool {
	n := 0
	if raw := p.scan.of(v); len(raw) > 0 && raw[0] == '"' {
		raw = raw[1 : len(raw)-1]
		var used int
		if n, used = decode(p.name[:], raw); used < len(raw) || n > MaxNameBytes {
			return false
		}
	}
	if *dst != string(p.name[:n]) {
		*dst = string(p.name[:n])
	}
	return true
}

// begin starts a chain for the model and salt just read. Token ids have a seed of their own: their bytes could
// spell a text.
func (p *Parser) begin(dst *Prompt, ids bool) {
	seed := chain.Seed(p.model, p.salt)
	if ids {
		seed = chain.Seed(p.model, p.salt, "ids")
	}
	p.enc.hasher.Reset(seed, dst.Chain)
	p.enc.begin(toChain)
}

var bom = []byte("\xEF\xBB\xBF")

// looksJSON reports whether a body starts as a JSON object or array.
func looksJSON(body []byte) bool {
	s := scanner{b: bytes.TrimPrefix(body, bom)}
	c := s.peek()
	return c == '{' || c == '['
}

// integer reads a JSON number written as a positive integer, at most math.MaxInt32; 0 for anything else.
func integer(raw []byte) int {
	n := 0
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0
		}
		n = min(n*10+int(c-'0'), math.MaxInt32)
	}
	return n
}
