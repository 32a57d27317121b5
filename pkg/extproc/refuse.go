package extproc

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/weirproxy/weir/pkg/prompt"
	"github.com/weirproxy/weir/pkg/route"
)

// refusals maps the Outcomes that weir answers itself to HTTP: 429 the replicas are contended, 503 there is
// none, weir stops or has no memory, 413 too large, 501 a tunnel. Never 504. The texts are fixed: nothing of the request comes back in them.
var refusals = map[route.Outcome]struct {
	status            typev3.StatusCode
	openAI, anthropic string // the error's type in that dialect
	text              string
}{
	route.Late: {typev3.StatusCode_TooManyRequests, "rate_limit_error", "rate_limit_error",
		"The model servers are busy: the request waited for its deadline without getting a place. Retry later."},
	route.Shed: {typev3.StatusCode_TooManyRequests, "rate_limit_error", "rate_limit_error",
		"The model servers are busy: the request would wait for longer than its deadline. Retry later."},
	route.Full: {typev3.StatusCode_TooManyRequests, "rate_limit_error", "rate_limit_error",
		"The model servers are busy and the queue is full. Retry later."},
	route.Stopped: {typev3.StatusCode_ServiceUnavailable, "server_error", "api_error",
		"The router of the model servers stops while the request waits for a place. Retry later."},
	route.TooLarge: {typev3.StatusCode_PayloadTooLarge, "invalid_request_error", "request_too_large",
		"The request body is larger than this server takes."},
	route.NoMemory: {typev3.StatusCode_ServiceUnavailable, "server_error", "api_error",
		"The router of the model servers has no memory for the request body now. Retry later."},
	route.Tunnel: {typev3.StatusCode_NotImplemented, "invalid_request_error", "invalid_request_error",
		"This server takes no upgraded connections and no CONNECT on this route."},
	route.NoReplica: {typev3.StatusCode_ServiceUnavailable, "server_error", "api_error",
		"No model server is available for this request."},
}

// refusal answers a refused request in its client's dialect.
func refusal(d *route.Decision, of dialect) *extprocv3.ProcessingResponse {
	r := refusals[d.Outcome]
	contentType, body := "application/json", []byte(nil)
	switch of {
	case openAI:
		body = openAIError(r.text, r.openAI, d.Outcome.String())
	case anthropic:
		body = anthropicError(r.text, r.anthropic)
	default:
		contentType, body = "text/plain; charset=utf-8", []byte(r.text+"\n")
	}
	set := []*corev3.HeaderValueOption{overwrite("content-type", contentType)}
	if d.Retry > 0 { // the clients of both APIs read the second where it is there
		set = append(set, overwrite("retry-after", strconv.Itoa(int(math.Ceil(d.Retry.Seconds())))),
			overwrite("retry-after-ms", strconv.FormatInt(d.Retry.Milliseconds(), 10)))
	}
	return &extprocv3.ProcessingResponse{
		Response: &extprocv3.ProcessingResponse_ImmediateResponse{ImmediateResponse: &extprocv3.ImmediateResponse{
			Status:  &typev3.HttpStatus{Code: r.status},
			Headers: &extprocv3.HeaderMutation{SetHeaders: set},
			Body:    body,
			Details: fmt.Sprintf("weir_%s", d.Outcome),
		}},
		DynamicMetadata: namespaces(d),
	}
}

// dialect is the form of error that a client reads.
type dialect uint8

const (
	plainText dialect = iota
	openAI
	anthropic
)

// ownPaths are how the paths of vLLM's own end that stand outside /v1. It answers errors there as OpenAI does, whether a
// model answers (/invocations) or not; package prompt lists those where none does, under any prefix.
var ownPaths = []string{
	"/classify", "/detokenize", "/generative_scoring", "/invocations", "/pooling", "/rerank", "/score", "/tokenize", "/v2/embed",
}

// dialectOf goes by the path without its query, as the parser reads it, and by the header that each of Anthropic's
// clients sends: a gateway may serve its API under any path.
func dialectOf(path string, anthropicVersion bool) dialect {
	switch prompt.APIOf(path) {
	case prompt.APIMessages, prompt.APICount:
		return anthropic
	case prompt.APIOther:
	default:
		if !anthropicVersion {
			return openAI
		}
	}
	path = string(prompt.PlainPath(path, nil)) + "/"
	switch {
	case anthropicVersion || strings.Contains(path, "/v1/messages/"):
		return anthropic
	case strings.Contains(path, "/v1/"):
		return openAI
	}
	for _, own := range ownPaths {
		if strings.HasSuffix(path, own+"/") {
			return openAI
		}
	}
	return plainText
}

// openAIError is the error object that OpenAI's clients read.
func openAIError(message, kind, code string) []byte {
	type object struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	return encode(struct {
		Error object `json:"error"`
	}{object{message, kind, nil, code}})
}

// anthropicError is the error object that Anthropic's clients read.
func anthropicError(message, kind string) []byte {
	type object struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	return encode(struct {
		Type  string `json:"type"`
		Error object `json:"error"`
	}{"error", object{kind, message}})
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings always marshal
	}
	return b
}
