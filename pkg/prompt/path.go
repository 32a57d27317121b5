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

// PlainPath is a request path as it is compared, in the memory of scratch: without its query, percent-encoding decoded
// once, each slash single and none at the end. A bad escape stays as it is.
func PlainPath(path string, scratch []byte) []byte {
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
	return bytes.TrimSuffix(scratch, []byte("/"))
}

// apiOf is APIOf, and PlainPath. Whatever stands before /v1 is a gateway's prefix. Case counts, and a path below a known
// one is another resource.
func apiOf(path string, scratch []byte) (API, []byte) {
	p := PlainPath(path, scratch)
	switch {
	case bytes.HasSuffix(p, []byte("/v1/chat/completions")):
		return APIChat, p
	case bytes.HasSuffix(p, []byte("/v1/responses")):
		return APIResponses, p
	case bytes.HasSuffix(p, []byte("/v1/messages")):
		return APIMessages, p
	case bytes.HasSuffix(p, []byte("/v1/messages/count_tokens")):
		return APICount, p
	case bytes.HasSuffix(p, []byte("/v1/embeddings")):
		return APIEmbeddings, p
	case bytes.HasSuffix(p, []byte("/v1/completions")):
		return APICompletions, p
	}
	return APIOther, p
}

// silent reports whether a request asks for no answer of a model: by its API, or by the last part of its path,
// which is a server's own for scores, tokens and the like; and where it has no body, as those have that look
// something up. The paths of package extproc tell another thing, the form of an error.
func silent(api API, path []byte, in Input) bool {
	switch {
	case api == APIEmbeddings || api == APICount:
		return true
	case api != APIOther:
		return false
	case len(in.Body) == 0 && in.Size == 0 && in.Unread == ReasonNone:
		return true
	}
	switch string(path[bytes.LastIndexByte(path, '/')+1:]) {
	case "rerank", "score", "generative_scoring", "pooling", "classify", "embed", "tokenize", "detokenize", "render":
		return true
	}
	return false
}
