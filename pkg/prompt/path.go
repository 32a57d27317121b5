package prompt

import (
	"bytes"
	"strings"
)

// APIOf names the API of a request path.
func APIOf(path string) API {
	api, _ := apiOf(path, nil)
	return api
}

// apiOf is APIOf. The query is no part of it; percent-encoding is decoded once;
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
	case bytes.HasSuffix(p, []byte("/v1/responses")):
		return APIResponses, scratch
	case bytes.HasSuffix(p, []byte("/v1/messages")):
		return APIMessages, scratch
	case bytes.HasSuffix(p, []byte("/v1/messages/count_tokens")):
		return APICount, scratch
	case bytes.HasSuffix(p, []byte("/v1/embeddings")):
		return APIEmbeddings, scratch
	case bytes.HasSuffix(p, []byte("/v1/completions")):
		return APICompletions, scratch
	}
	return APIOther, scratch
}

// silent reports whether a request asks for no answer of a model: by its API, or by the last part of its path,
// which is a server's own for scores, tokens and the like; and where it has no body, as those have that look
// something up.
func silent(api API, path []byte, in Input) bool {
	switch {
	case api == APIEmbeddings || api == APICount:
		return true
	case api != APIOther:
		return false
	case len(in.Body) == 0 && in.Size == 0 && in.Unread == ReasonNone:
		return true
	}
	path = bytes.TrimSuffix(path, []byte("/"))
	switch string(path[bytes.LastIndexByte(path, '/')+1:]) {
	case "rerank", "score", "pooling", "classify", "embed", "tokenize", "detokenize", "render":
		return true
	}
	return false
}
