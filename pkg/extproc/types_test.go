package extproc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/prompt"
	"github.com/weirproxy/weir/pkg/route"
)

// TestContentTypes is vllm#11171: what a body is, its bytes say and not its content-type, and never does weir refuse one.
func TestContentTypes(t *testing.T) {
	types := [][]string{
		nil, {"content-type", ""}, {"content-type", "application/x-www-form-urlencoded"}, {"content-type", "application/json; charset=utf-8"},
		{"content-type", "APPLICATION/JSON"}, {"content-type", "text/plain"}, {"content-type", "application/json", "+content-type", "text/plain"},
	}
	eachMode(t, options{}, func(f *fake, m mode) {
		for _, headers := range types {
			c := f.call(m)
			h := c.tmpl["request_headers"].GetRequestHeaders().Headers
			for i, v := range h.Headers {
				if v.Key == "content-type" {
					h.Headers = append(h.Headers[:i], h.Headers[i+1:]...)
					break
				}
			}
			c.request(chatBody, headers...)
			c.replies()
			c.answer("415", endpoints[0])
			c.close()
			if d := f.one(); d.Prompt.Reason != prompt.ReasonNone || d.Outcome != route.Answered || c.check.pick == "" {
				t.Errorf("%v: reason %v, %v", headers, d.Prompt.Reason, d.Outcome)
			}
		}
	})
}

// TestMultipart is production-stack#1019: audio of 700 kB in a form, in pieces of 64 KiB, with or without the boundary
// that its headers name: routed by its size, with no chain, and every byte comes back.
func TestMultipart(t *testing.T) {
	audio := strings.Repeat("{\"model\":\"evil\"}\x00\xff", 700_000/18)
	part := func(name, value string) string {
		return fmt.Sprintf("--XyZ\r\ncontent-disposition: form-data; name=%q\r\n\r\n%s\r\n", name, value)
	}
	form := part("model", "whisper") + part("prompt", "a weir") + part("file", audio) + "--XyZ--\r\n"
	for _, typ := range []string{"multipart/form-data; boundary=XyZ", "multipart/form-data"} {
		for _, path := range []string{"/v1/audio/transcriptions", "/v1/chat/completions"} {
			eachMode(t, options{}, func(f *fake, m mode) {
				c := f.call(m)
				c.headers(false, ":path", path, "content-type", typ)
				if m == buffered {
					c.replies()
					c.body(form, true)
				} else {
					for rest := form; rest != ""; rest = rest[min(len(rest), 64<<10):] {
						c.body(rest[:min(len(rest), 64<<10)], len(rest) <= 64<<10)
					}
				}
				c.replies()
				if m == streamed && string(c.check.echo) != form {
					t.Errorf("%d bytes of %d come back", len(c.check.echo), len(form))
				}
				c.answer("200", endpoints[0])
				c.close()
				d := f.one()
				if len(d.Prompt.Chain) != 0 || d.Prompt.Model != "" || d.Prompt.Tokens == 0 || d.Prompt.Tokens > prompt.MediaTokens || d.Outcome != route.Answered {
					t.Errorf("%s: chain of %d, model %q, %d tokens, %v", path, len(d.Prompt.Chain), d.Prompt.Model, d.Prompt.Tokens, d.Outcome)
				}
			})
		}
	}
}
