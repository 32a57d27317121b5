package prompt

import "bytes"

// A partial body is the beginning of one. What of it makes the chain is what would make the whole body's,
// whatever follows: the canonical order puts some parts before others that come earlier in the body, so a part
// goes into the chain only when all that may stand before it has come. Real clients write the members of
// a body in one of these orders:
//
//	openai (Python)     model, stream, messages ... tools;     model, input;     input, instructions, model ...
//	anthropic (Python)  max_tokens, messages, model ... system ... tools
//	by hand             model, then the prompt
//
// From it, for a body that is cut among its messages or behind them:
//
//   - chat: the leading system messages, as tools may still come and stand behind them. Where the tools came
//     before the messages, all messages, once one came that is not the system's. By tools_position first nothing before
//     the tools came; by before_last_user all messages before the last of a user that came.
//   - messages: nothing until system came, and then as in chat.
//   - responses: nothing, as what the server kept of another request may stand before all of it.
//   - completions and embeddings: the text or token ids as far as they came, of a list those of its first item.
//
// Of the message that is cut, its role and as much as came of its content; of a content part that is cut, its text
// if its type has come; and of a string that is cut, all but an escape that is not whole. A model or cache_salt that has
// not come is taken for absent: such bodies share their chains with one another and with no other, whatever their
// models. Documents and the other options, and changes of an Anthropic body's tools, count if they came; as clients write
// them behind the messages or among them, they are mostly taken for absent. So are max_tokens, stream and n. A member that
// comes a second time behind the cut is not seen.

// end ends a scan that has run out of text: a fault, unless the text is partial.
func (s *scanner) end() {
	if !s.partial || s.i < len(s.b) { // a NUL byte is no end
		s.fail(ReasonNotJSON)
		return
	}
	s.cut = true
}

// last is value for one that reaches the end of a partial text, where a number may go on.
func (s *scanner) last(start int) span {
	switch {
	case s.cut: // in a string
		if end := whole(s.b, start+1); end > start+1 {
			s.begun = span{start, end + 1}
		}
		return span{}
	case class[s.b[start]] == scalar:
		s.end()
		return span{}
	}
	return span{start, s.i}
}

// open is value, or of a string that is cut its beginning.
func (s *scanner) open() span {
	if v := s.value(); !s.cut {
		return v
	}
	return s.begun
}

// whole is where the text from start to the end of b, less its last byte, ends without an escape that is not
// whole, nor the first half of a surrogate pair.
func whole(b []byte, start int) int {
	end := len(b) - 1
	if end < start {
		return start
	}
	if at := bytes.LastIndexByte(b[max(start, end-5):end], '\\'); at >= 0 {
		at += max(start, end-5)
		if first := runOf(b, start, at); (at-first)%2 == 0 { // it begins an escape
			if n := escapeLen(b[at:end]); n == 0 || at+n > end {
				end = at
			}
		}
	}
	for end-6 >= start && b[end-6] == '\\' && unit(b[end-6:])&^0x3FF == 0xD800 {
		end -= 6
	}
	return end
}

// runOf is where the backslashes begin that end with the one at at.
func runOf(b []byte, start, at int) int {
	for at > start && b[at-1] == '\\' {
		at--
	}
	return at
}

// escapeLen is the length of the escape that begins raw; 0: its letter is not there.
func escapeLen(raw []byte) int {
	switch {
	case len(raw) < 2:
		return 0
	case raw[1] == 'u':
		return 6
	}
	return 2
}
