package replica

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/lab/step"
)

const (
	tokenBytes = 4 // of text; chain.BytesPerToken says why
	blockBytes = step.BlockTokens * tokenBytes
	// partTokens is what an image, sound or other part costs: LLaVA 1.5's 24 x 24 patches of an image.
	partTokens = 576
)

// content is a message's text, however the client wrote it: a string, null, or a list of parts.
type content []byte

func (c *content) UnmarshalJSON(raw []byte) error {
	switch raw[0] {
	case 'n':
		return nil
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		*c = content(s)
		return nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		if err := c.addPart(p); err != nil {
			return err
		}
	}
	return nil
}

// addPart adds a text part as its text and any other one as partTokens tokens that stand for its bytes.
func (c *content) addPart(raw json.RawMessage) error {
	var part struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(raw, &part); err != nil {
		return err
	}
	switch part.Type {
	case "text", "input_text", "output_text", "":
		if part.Text != nil {
			*c = append(*c, *part.Text...)
		}
		return nil
	}
	id := binary.LittleEndian.AppendUint64(nil, xxhash.Sum64(raw))
	*c = append(*c, bytes.Repeat(id, partTokens*tokenBytes/len(id))...)
	return nil
}

// chatText renders a chat as a template would: the system message, the tools, the rest, and the opening of
// the answer. Every message ends on a token boundary, so that the text up to a message is whole tokens and
// an answer that comes back has the hashes that it had when it was made.
func chatText(r *request) []byte {
	n := 64 + len(r.Tools)
	for i := range r.Messages {
		n += len(r.Messages[i].Content) + len(r.Messages[i].ToolCalls) + 64
	}
	text := make([]byte, 0, n)
	tools := !isNull(r.Tools)
	for i := range r.Messages {
		m := &r.Messages[i]
		if tools && m.Role != "system" && m.Role != "developer" {
			text = pad(append(append(text, "<|tools|>\n"...), r.Tools...))
			tools = false
		}
		text = append(openMessage(text, m.Role), m.Content...)
		if !isNull(m.ToolCalls) {
			text = append(text, m.ToolCalls...)
		}
		text = append(text, "<|e>"...) // one token, after an answer's whole ones
		text = pad(text)
	}
	return openMessage(text, "assistant")
}

func openMessage(text []byte, role string) []byte {
	text = append(text, "<|"...)
	text = append(text, role...)
	return pad(append(text, "|>\n"...))
}

// pad fills the last token.
func pad(text []byte) []byte {
	for len(text)%tokenBytes != 0 {
		text = append(text, 0)
	}
	return text
}

// promptTexts reads the prompts in a field of a body in their four forms. Token ids become four bytes each. The error is
// an *apiError.
func promptTexts(raw json.RawMessage, field string) ([][]byte, error) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return checkPrompts([][]byte{pad([]byte(one))}, field)
	}
	var many []string
	if json.Unmarshal(raw, &many) == nil {
		texts := make([][]byte, len(many))
		for i, s := range many {
			texts[i] = pad([]byte(s))
		}
		return checkPrompts(texts, field)
	}
	var ids []uint32
	if json.Unmarshal(raw, &ids) == nil {
		return checkPrompts([][]byte{idText(ids)}, field)
	}
	var lists [][]uint32
	if json.Unmarshal(raw, &lists) == nil {
		texts := make([][]byte, len(lists))
		for i, l := range lists {
			texts[i] = idText(l)
		}
		return checkPrompts(texts, field)
	}
	return nil, &apiError{http.StatusBadRequest,
		field + " must be a string, a list of strings, a list of token ids or a list of such lists", typeBadRequest, field}
}

func idText(ids []uint32) []byte {
	text := make([]byte, 0, len(ids)*tokenBytes)
	for _, id := range ids {
		text = binary.LittleEndian.AppendUint32(text, id)
	}
	return text
}

func checkPrompts(texts [][]byte, field string) ([][]byte, error) {
	if len(texts) == 0 || len(texts) > maxChoices {
		return nil, &apiError{http.StatusBadRequest, fmt.Sprintf("%s holds %d prompts, not 1 to %d", field, len(texts), maxChoices), typeBadRequest, field}
	}
	for i, t := range texts {
		if len(t) == 0 {
			return nil, &apiError{http.StatusBadRequest, fmt.Sprintf("%s %d is empty", field, i), typeBadRequest, field}
		}
	}
	return texts, nil
}

// filler is the words of every answer, one token of four bytes each.
var filler = [...]string{" the", " old", " man", " has", " one", " big", " net", " and", " low", " sky"}

// answer appends the answer's tokens from up to but not including to.
func answer(dst []byte, from, to int) []byte {
	for i := from; i < to; i++ {
		dst = append(dst, filler[i%len(filler)]...)
	}
	return dst
}

// blockHashes chains the hashes of the full blocks of a prompt and its answer.
func blockHashes(seed uint64, text []byte, output int) []uint64 {
	text = answer(text, 0, output)
	out := make([]uint64, 0, len(text)/blockBytes)
	var d xxhash.Digest
	for ; len(text) >= blockBytes; text = text[blockBytes:] {
		d.ResetWithSeed(seed)
		d.Write(text[:blockBytes]) // never fails (xxhash.Digest)
		seed = d.Sum64()
		out = append(out, seed)
	}
	return out
}

func (s *Server) seed(r *request) uint64 { return chain.Seed(s.cfg.Model, r.CacheSalt) }
