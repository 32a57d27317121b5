package prompt

import (
	"bytes"
	"strings"
)

// apiOf names the API of a request path. The query is no part of it; percent-encoding is decoded once;
// doubled and trailing slashes are dropped; whatever stands before /v1 is a gateway's prefix. Case counts, and
// a path below a known one is another resource. scratch is where a path that needs rewriting is rewritten.
func apiOf(path string, scratch []byte) (API, []byte) {
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	scratch = scratch[:0]
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' && i+2 < len(path) {
			if v := hex[path[i+1]]<<4 | hex[path[i+2]]; v >= 0 {
				c, i = byte(v), i+2
			}
		}
		if c == '/' && len(scratch) > 0 && scratch[len(scratch)-1] == '/' {
			continue
		}
		scratch = append(scratch, c)
	}
	p := bytes.TrimSuffix(scratch, []byte("/"))
	switch {
	case bytes.HasSuffix(p, []byte("/v1/chat/completions")):
		return APIChat, scratch
	case bytes.HasSuffix(p, []byte("/v1/completions")):
		return APICompletions, scratch
	}
	return APIOther, scratch
}

// identity reports whether a content-encoding header leaves the body as it is.
func identity(encoding string) bool {
	for encoding != "" {
		var coding string
		coding, encoding, _ = strings.Cut(encoding, ",")
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return false
		}
	}
	return true
}
