package prompt

import (
	"encoding/binary"
	"math"
)

// completion reads a completions prompt: a string, an array of token ids, or an array of such prompts.
func (p *Parser) completion(dst *Prompt, at span) Reason {
	raw := p.scan.of(at)
	s := scanner{b: raw}
	p.begin(dst, false)
	total := -1
	if s.peek() == '"' {
		total = p.item(dst, raw, true)
	} else if s.enter(); class[s.peek()] == scalar {
		total = p.item(dst, raw, true)
	} else {
		total = p.batch(dst, &s)
	}
	if total < 0 {
		return ReasonShape
	}
	dst.Tokens = max(1, total)
	dst.Chain = p.enc.hasher.Chain()
	return ReasonNone
}

// batch reads the prompts that s stands before and returns their tokens; below zero if one cannot be read.
func (p *Parser) batch(dst *Prompt, s *scanner) int {
	total := 0
	for n := 0; s.more(']', n); n++ {
		tokens := p.item(dst, s.of(s.value()), n == 0)
		if tokens < 0 {
			return -1
		}
		total += tokens
		dst.Prompts = min(n+1, MaxPrompts)
	}
	if s.reason != ReasonNone {
		return -1
	}
	return total
}

// item reads one prompt of a batch and returns its tokens; below zero if it is neither a string nor token
// ids. Only the first makes a chain.
func (p *Parser) item(dst *Prompt, raw []byte, first bool) int {
	if len(raw) == 0 || raw[0] != '"' && raw[0] != '[' {
		return -1
	}
	if first {
		dst.Exact = raw[0] == '['
		p.begin(dst, raw[0] == '[')
	} else {
		p.enc.begin(toCount)
	}
	if raw[0] == '[' && !p.ids(raw) {
		return -1
	}
	if raw[0] == '"' {
		p.enc.text(raw[1 : len(raw)-1])
	}
	return p.enc.tokens()
}

// ids writes token ids, 4 bytes each (chain.BytesPerToken), so that a block holds as many as it has tokens.
func (p *Parser) ids(raw []byte) bool {
	e := &p.enc
	s := scanner{b: raw}
	s.enter()
	for n := 0; s.more(']', n); n++ {
		id := 0
		for _, c := range s.scalar() { // none before a string or bracket, which more then refuses
			if id = id*10 + int(c-'0'); c < '0' || c > '9' || id > math.MaxUint32 {
				return false
			}
		}
		e.room(4)
		binary.LittleEndian.PutUint32(e.buf[e.fill:], uint32(id))
		e.fill += 4
	}
	return s.reason == ReasonNone
}
