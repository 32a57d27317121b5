package prompt

import (
	"encoding/binary"
	"math"
)

// completion reads a completions prompt, or an input of embeddings: a string, an array of token ids, or an
// array of such prompts.
func (p *Parser) completion(dst *Prompt, at span) Reason {
	raw := p.scan.of(at)
	s := scanner{b: raw}
	p.begin(false)
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
	return ReasonNone
}

// beginning reads the start of a completions prompt from at up to the end of a body that is cut in it.
func (p *Parser) beginning(at int) {
	s := scanner{b: p.scan.b, i: at, partial: true}
	p.begin(false)
	if s.peek() == '[' {
		s.enter()
		if c := s.peek(); c != '"' {
			if c == '[' {
				s.enter()
			}
			p.begin(true)
			p.tokenIDs(&s)
			p.enc.flush()
			return
		}
	}
	if raw := s.of(s.open()); len(raw) > 1 && raw[0] == '"' {
		p.enc.text(raw[1 : len(raw)-1])
	}
	p.enc.flush()
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
		p.begin(raw[0] == '[')
	} else {
		p.enc.begin(toCount)
	}
	if raw[0] == '[' && !p.ids(raw) {
		return -1
	}
	if raw[0] == '"' {
		p.enc.text(raw[1 : len(raw)-1])
	}
	return p.length()
}

// ids writes an array of token ids.
func (p *Parser) ids(raw []byte) bool {
	s := scanner{b: raw}
	s.enter()
	return p.tokenIDs(&s)
}

// tokenIDs writes token ids, 4 bytes each (chain.BytesPerToken), so that a block holds as many as it has tokens.
// It reports whether they are such and nothing else up to the end of their array.
func (p *Parser) tokenIDs(s *scanner) bool {
	e := &p.enc
	for n := 0; s.more(']', n); n++ {
		id, digits := 0, s.scalar()
		if s.partial && s.i == len(s.b) {
			break // of which some may be missing
		}
		for _, c := range digits { // none before a string or bracket, which more then refuses
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
