package prompt

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/weirproxy/weir/pkg/chain"
)

// The reference reads a body with encoding/json and spells out the canonical stream piece by piece. It shares
// with the parser the names of tags and bounds, and no code.

// wanted is what the reference makes of a body.
type wanted struct {
	Prompt
	seed   uint64
	stream []byte // of the first prompt

	truncated bool // it is
}

// object decodes a JSON object: the last of equal keys wins.
func object(raw json.RawMessage) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	if len(raw) == 0 || raw[0] != '{' {
		return m
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		panic(err)
	}
	return m
}

// array decodes a JSON array; false if raw is none.
func array(raw json.RawMessage) ([]json.RawMessage, bool) {
	if len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	var a []json.RawMessage
	if err := json.Unmarshal(raw, &a); err != nil {
		panic(err)
	}
	for i := range a {
		a[i] = bytes.TrimSpace(a[i])
	}
	return a, true
}

func null(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

var escape = regexp.MustCompile(`\\u[0-9a-fA-F]{4}|\\.`)

// decoded is a string's bytes in the canonical stream.
func decoded(raw json.RawMessage) []byte {
	text := string(raw[1 : len(raw)-1])
	var out strings.Builder
	literal := func(s string) { out.WriteString(strings.ReplaceAll(s, "\xff", "\xff\x00")) }
	unit := func(esc string) (uint64, bool) {
		if !strings.HasPrefix(esc, `\u`) {
			return 0, false
		}
		v, err := strconv.ParseUint(esc[2:], 16, 16)
		return v, err == nil && v >= 0xD800 && v <= 0xDFFF
	}
	at := 0
	found := escape.FindAllStringIndex(text, -1)
	for i := 0; i < len(found); i++ {
		esc := text[found[i][0]:found[i][1]]
		literal(text[at:found[i][0]])
		at = found[i][1]
		if high, ok := unit(esc); ok {
			paired := false
			if high < 0xDC00 && i+1 < len(found) && found[i+1][0] == at {
				next := text[at:found[i+1][1]]
				if low, ok := unit(next); ok && low >= 0xDC00 {
					esc, at, paired = esc+next, found[i+1][1], true
					i++
				}
			}
			if !paired {
				out.Write([]byte{0xFF, 1, byte(high >> 8), byte(high)})
				continue
			}
		}
		var s string
		if err := json.Unmarshal([]byte(`"`+esc+`"`), &s); err != nil {
			panic(err)
		}
		out.WriteString(s)
	}
	literal(text[at:])
	return []byte(out.String())
}

// token is one of a JSON value: a delimiter, a string or a scalar, with its bytes in the canonical stream.
type token struct {
	kind byte
	out  []byte
}

// lex cuts a JSON value into tokens; the raw text of strings is cut out by offsets, since a Decoder does not tell a
// lone surrogate from U+FFFD.
func lex(raw json.RawMessage) (all []token) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	for from := int64(0); ; from = dec.InputOffset() {
		tok, err := dec.Token()
		if err == io.EOF {
			return all
		} else if err != nil {
			panic(err)
		}
		text := bytes.TrimLeft(raw[from:dec.InputOffset()], " \t\r\n,:")
		switch tok := tok.(type) {
		case json.Delim:
			all = append(all, token{byte(tok), []byte{0xFF, byte(tok)}})
		case string:
			all = append(all, token{'"', append([]byte{0xFF, '"'}, decoded(text)...)})
		default:
			all = append(all, token{'#', append([]byte{0xFF, '#'}, text...)})
		}
	}
}

// tokens spells out a JSON value.
func tokens(raw json.RawMessage) (out []byte) {
	for _, t := range lex(raw) {
		out = append(out, t.out...)
	}
	return out
}

func valueOf(raw json.RawMessage) []byte {
	switch {
	case null(raw):
		return nil
	case raw[0] == '"':
		return decoded(raw)
	}
	return tokens(raw)
}

func ceil4(n int) int { return (n + 3) / 4 }

// depthOf is the deepest nesting of valid JSON.
func depthOf(raw []byte) (deepest int) {
	depth, inside, escaped := 0, false, false
	for _, c := range raw {
		switch {
		case inside:
			inside = escaped || c != '"'
			escaped = !escaped && c == '\\'
		case c == '"':
			inside = true
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// plainString is a member that should be a string, "" if it is none.
func plainString(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return string(decoded(raw))
}

// limitOf is a positive integer, as spelled, and 0 for anything else.
func limitOf(raw json.RawMessage) int {
	if !digits.Match(raw) {
		return 0
	}
	v, err := strconv.ParseUint(string(raw), 10, 31)
	if err != nil {
		return 1<<31 - 1
	}
	return int(v)
}

// reference reads a body that is valid JSON.
func reference(api API, at ToolsPosition, body []byte) (w wanted) {
	size := wanted{Prompt: Prompt{API: api, Prompts: 1, Answers: 1, Tokens: min(ceil4(len(body)), MaxSizeTokens)}}
	size.Silent = api == APIEmbeddings || api == APICount
	body = bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF"))
	trimmed := bytes.TrimSpace(body)
	if trimmed[0] != '{' && trimmed[0] != '[' {
		size.Tokens = min(size.Tokens, MediaTokens)
	}
	if trimmed[0] != '{' {
		size.Reason = ReasonNotJSON
		return size
	}
	if depthOf(body) > MaxDepth {
		size.Reason = ReasonDepth
		return size
	}
	m := object(trimmed)
	size.answers(m)
	size.Reason = ReasonShape
	salt, model, key := plainString(m["cache_salt"]), plainString(m["model"]), plainString(m["prompt_cache_key"])
	if len(model) > MaxNameBytes || len(salt) > MaxNameBytes {
		return size
	}
	size.Model = model
	if len(key) <= MaxNameBytes {
		size.CacheKey = key
	}
	w = size
	w.Reason, w.Tokens, w.seed = ReasonNone, 0, chain.Seed(model, salt)
	if w.Reason = w.prompt(m, at, salt); w.Reason != ReasonNone {
		size.Reason = w.Reason
		if w.Reason == ReasonStored && w.Tokens > 0 {
			size.Tokens = w.Tokens
		}
		return size
	}
	w.Tokens = max(1, w.Tokens)
	if n := limitOf(m["truncate_prompt_tokens"]); n > 0 && ceil4(len(w.stream)) > n {
		w.truncated = true
		return w
	}
	w.Chain = chainOf(w.seed, w.stream)
	return w
}

// answers reads what bounds the answers.
func (w *wanted) answers(m map[string]json.RawMessage) {
	w.Stream = string(m["stream"]) == "true"
	limit := m["max_tokens"]
	if w.API == APIResponses {
		limit = m["max_output_tokens"]
	} else if v := m["max_completion_tokens"]; w.API == APIChat && !null(v) {
		limit = v
	}
	if w.MaxTokens = limitOf(limit); string(limit) == "0" {
		w.MaxTokens = 1
	}
	w.Answers = limitOf(m["n"])
	if w.API == APICompletions && limitOf(m["best_of"]) > w.Answers {
		w.Answers = limitOf(m["best_of"])
	}
	w.Answers = min(max(w.Answers, 1), 128)
	if w.API != APIChat && w.API != APICompletions {
		w.Answers = 1
	}
	if w.Silent {
		w.Answers = 1
	}
}

// chainOf chains a stream's full blocks.
func chainOf(seed uint64, stream []byte) (c chain.Chain) {
	for ; len(stream) >= chain.BlockBytes; stream = stream[chain.BlockBytes:] {
		d := xxhash.NewWithSeed(seed)
		d.Write(stream[:chain.BlockBytes])
		seed = d.Sum64()
		c = append(c, chain.Hash(seed))
	}
	return c
}
