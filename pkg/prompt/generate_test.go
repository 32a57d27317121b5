package prompt

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// render writes JSON in one of its many spellings: whitespace, escapes and the order of members are drawn.
type render struct{ *rand.Rand }

func (r render) space() string { return []string{"", "", "", " ", "\n\t", " \r\n"}[r.IntN(6)] }

func (r render) str(s string) string {
	var b strings.Builder
	style := r.IntN(3) // as little escaped as may be, some, all
	for _, c := range s {
		switch short := strings.IndexRune("\"\\/\b\f\n\r\t", c); {
		case short >= 0 && r.IntN(4) > 0:
			b.WriteString(`\` + `"\/bfnrt`[short:short+1])
		case c < ' ' || c == '"' || c == '\\' || style == 2 || style == 1 && r.IntN(4) == 0:
			for _, u := range utf16.Encode([]rune{c}) {
				fmt.Fprintf(&b, []string{`\u%04x`, `\u%04X`}[r.IntN(2)], u)
			}
		default:
			b.WriteRune(c)
		}
	}
	return `"` + b.String() + `"`
}

// list joins elements between brackets; in any order if they are members of an object whose order is free.
func (r render) list(brackets string, shuffle bool, elems ...string) string {
	elems = slices.DeleteFunc(slices.Clone(elems), func(e string) bool { return e == "" })
	if shuffle {
		r.Shuffle(len(elems), func(i, j int) { elems[i], elems[j] = elems[j], elems[i] })
	}
	for i := range elems {
		elems[i] = r.space() + elems[i] + r.space()
	}
	return brackets[:1] + r.space() + strings.Join(elems, ",") + brackets[1:]
}

// member is nothing if value is.
func (r render) member(name, value string) string {
	if value == "" {
		return ""
	}
	return r.str(name) + r.space() + ":" + r.space() + value
}

// turn is a message before it is spelled.
type turn struct {
	role    string
	content []string // text parts
	image   string
	id      string
	call    [2]string
}

type conversation struct {
	model, salt string
	documents   []string
	effort      string
	kwargs      []string // values
	tools       []string
	turns       []turn
}

var alphabet = []rune("aaaaabcdef \"\\/\n\t\x00\x1fé中文😀\u2028\ufffdSYSTEM")

func text(r *rand.Rand, longest int) string {
	out := make([]rune, r.IntN(longest+1))
	for i := range out {
		out[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(out)
}

func converse(r *rand.Rand) (c conversation) {
	c.model, c.salt = text(r, 8), text(r, 2)
	if r.IntN(4) == 0 {
		c.documents, c.effort = []string{text(r, 200), text(r, 9)}, text(r, 5)
	}
	for range max(0, r.IntN(6)-3) {
		c.kwargs = append(c.kwargs, text(r, 9))
	}
	for range r.IntN(3) {
		c.tools = append(c.tools, text(r, 300))
	}
	for range r.IntN(6) {
		t := turn{role: []string{"system", "user", "assistant", "tool"}[r.IntN(4)]}
		for range r.IntN(3) {
			t.content = append(t.content, text(r, []int{3, 40, 2000}[r.IntN(3)]))
		}
		switch r.IntN(4) {
		case 0:
			t.image = text(r, 20)
		case 1:
			t.id, t.call = text(r, 9), [2]string{text(r, 9), text(r, 200)}
		}
		c.turns = append(c.turns, t)
	}
	return c
}

func (r render) body(c conversation) string { return r.of(APIChat, c) }

func (r render) turn(t turn) string {
	var parts []string
	for _, p := range t.content {
		p = r.signed(t.role, p)
		parts = append(parts, r.list("{}", true, r.member("type", r.str("text")), r.member("text", r.str(p))))
	}
	if t.image != "" {
		image := r.list("{}", true, r.member("url", r.str(t.image)), r.member("detail", []string{"", `"auto"`, `"low"`}[r.IntN(3)]))
		parts = append(parts, r.list("{}", true, r.member("type", r.str("image_url")), r.member("image_url", image)))
	}
	content := r.list("[]", false, parts...)
	if len(parts) == 0 {
		content = []string{content, "null", ""}[r.IntN(3)]
	} else if len(parts) == 1 && t.image == "" && r.IntN(2) == 0 {
		content = r.str(r.signed(t.role, t.content[0]))
	}
	calls, id := "", ""
	if t.call != [2]string{} {
		fn := r.list("{}", true, r.member("name", r.str(t.call[0])), r.member("arguments", r.str(t.call[1])))
		calls = r.list("[]", false, r.list("{}", true, r.member("id", r.str(t.id)), r.member("type", r.str("function")), r.member("function", fn)))
	}
	if t.id != "" {
		id = r.str(t.id)
	}
	return r.list("{}", true, r.member("role", r.str(t.role)), r.member("content", content),
		r.member("tool_calls", calls), r.member("tool_call_id", id))
}

// signed is a text that may have an attribution before it if it is the system's, and something is left behind that.
func (r render) signed(role, said string) string {
	if role == "system" && said != "" && r.IntN(3) == 0 {
		return "x-anthropic-billing-header: cch=" + strconv.Itoa(r.IntN(1000)) + "\n" + said
	}
	return said
}
