package prompt

import (
	"bytes"
	"math"
	"slices"

	"github.com/weirproxy/weir/pkg/chain"
)

// Parser reads bodies. It keeps its scratch memory from one request to the next, bounded by MaxParts, and a
// body only until Parse returns. The zero value is ready. Not safe for concurrent use.
type Parser struct {
	scan       scanner
	enc        encoder
	api        API
	head       []field // what stands before all messages though the body has it elsewhere
	tools      []field
	changes    []field     // of the tools, in the messages
	fields     []field     // of the messages, in canonical order but for the tools
	parts      []field     // of the message being scanned: its content
	calls      []field     // likewise: its tool calls
	thoughts   []field     // likewise: its reasoning
	images     []field     // of the tool's result being scanned
	references []field     // likewise: the tools that it names
	hashes     chain.Chain // of the last request, which has a copy of its own size
	broken     bool        // the messages cannot be read
	over       bool        // there are more than MaxParts parts

	longest   int  // tokens that a prompt is cut to; 0: it is not
	truncated bool // the prompt of the chain is

	model, salt, cacheKey string                       // of the last request: not made again while they stay the same
	name                  [MaxNameBytes + maxStep]byte // scratch
	path                  []byte                       // scratch
}

// firstBlocks is the room for blocks that a Parser begins with: 32 Ki tokens, more than most prompts have.
const firstBlocks = 512

// Parse fills dst from a request, using the memory of dst.Chain again. It never fails: what it cannot read is estimated
// from its size, and dst.Reason says why. Time is linear in the body; nothing is allocated once the scratch memory has
// grown, except for a model, salt or key that differs from the last one.
func (p *Parser) Parse(dst *Prompt, in Input) {
	*dst = Prompt{Chain: dst.Chain[:0], Prompts: 1, Answers: 1}
	dst.API, p.path = apiOf(in.Path, p.path)
	dst.Silent = silent(dst.API, p.path, in)
	p.api = dst.API
	p.hashes = slices.Grow(p.hashes[:0], firstBlocks)
	p.enc.hasher.Reset(0, p.hashes)
	p.longest, p.truncated = 0, false
	dst.Reason = p.read(dst, in)
	if p.hashes = p.enc.hasher.Chain(); !p.truncated {
		dst.Chain = append(dst.Chain, p.hashes...)
	}
	size := max(in.Size, int64(len(in.Body)))
	switch {
	case dst.Reason != ReasonNone:
		dst.Chain, dst.Exact, dst.Prompts = dst.Chain[:0], false, 1
		if dst.Reason != ReasonStored || dst.Tokens == 0 || p.scan.cut {
			dst.Tokens = sizeTokens(size, in.Unread != ReasonNone || looksJSON(in.Body))
		}
	case p.scan.cut:
		dst.Exact, dst.Prompts = false, 1
		dst.Tokens = max(sizeTokens(size, true), len(dst.Chain)*chain.BlockTokens)
	}
	p.scan.reset(nil, false)
}

func (p *Parser) read(dst *Prompt, in Input) Reason {
	switch {
	case dst.API == APIOther:
		return ReasonPath
	case in.Unread != ReasonNone:
		return in.Unread
	case len(in.Body) == 0:
		return ReasonEmpty
	}
	p.scan.reset(bytes.TrimPrefix(in.Body, bom), in.Partial)
	var m members
	if r := p.body(&m); r != ReasonNone {
		return r
	}
	p.answers(dst, &m)
	p.longest = integer(p.scan.of(m.truncate))
	if !p.text(&p.model, m.model) || !p.text(&p.salt, m.salt) {
		return ReasonShape
	}
	if !p.text(&p.cacheKey, m.cacheKey) {
		p.cacheKey = ""
	}
	dst.Model, dst.CacheKey = p.model, p.cacheKey
	return p.prompt(dst, &m, in.Tools[dst.Model])
}

// answers reads what bounds the answers.
func (p *Parser) answers(dst *Prompt, m *members) {
	dst.Stream = string(p.scan.of(m.stream)) == "true"
	limit := m.maxTokens
	switch {
	case dst.API == APIResponses:
		limit = m.maxOutput
	case dst.API == APIChat && !p.absent(m.maxCompletionTokens):
		limit = m.maxCompletionTokens
	}
	if dst.MaxTokens = integer(p.scan.of(limit)); string(p.scan.of(limit)) == "0" {
		dst.MaxTokens = 1 // of an echo: vLLM decodes once
	}
	dst.Answers = integer(p.scan.of(m.n))
	if dst.API == APICompletions { // of best_of answers, n are returned
		dst.Answers = max(dst.Answers, integer(p.scan.of(m.bestOf)))
	}
	dst.Answers = min(max(dst.Answers, 1), MaxAnswers)
	if dst.Silent || dst.API != APIChat && dst.API != APICompletions { // the others have no n
		dst.Answers = 1
	}
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
func (p *Parser) begin(ids bool) {
	seed := chain.Seed(p.model, p.salt)
	if ids {
		seed = chain.Seed(p.model, p.salt, "ids")
	}
	p.enc.hasher.Reset(seed, p.hashes)
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
