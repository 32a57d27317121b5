package extproc

import (
	"encoding/json"
	"fmt"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/weirproxy/weir/pkg/route"
)

// refusals maps the Outcomes that weir answers itself to HTTP: 429 the replicas are contended, 503 there is
// none, 413 too large. Never 504. The texts are fixed: nothing of the request comes back in them.
var refusals = map[route.Outcome]struct {
	status typev3.StatusCode
	kind   string // OpenAI's error type
	text   string
}{
	route.Late:      {typev3.StatusCode_TooManyRequests, "rate_limit_error", "The model servers are busy: the request waited for its deadline without getting a place. Retry later."},
	route.Full:      {typev3.StatusCode_TooManyRequests, "rate_limit_error", "The model servers are busy and the queue is full. Retry later."},
	route.TooLarge:  {typev3.StatusCode_PayloadTooLarge, "invalid_request_error", "The request body is larger than this server takes."},
	route.NoReplica: {typev3.StatusCode_ServiceUnavailable, "server_error", "No model server is available for this request."},
}

// refusal answers a refused request with an OpenAI error object.
func refusal(d *route.Decision) *extprocv3.ProcessingResponse {
	r := refusals[d.Outcome]
	set := []*corev3.HeaderValueOption{overwrite("content-type", "application/json")}
	if d.Retry > 0 {
		set = append(set, overwrite("retry-after", strconv.Itoa(int(d.Retry.Seconds()))))
	}
	return &extprocv3.ProcessingResponse{
		Response: &extprocv3.ProcessingResponse_ImmediateResponse{ImmediateResponse: &extprocv3.ImmediateResponse{
			Status:  &typev3.HttpStatus{Code: r.status},
			Headers: &extprocv3.HeaderMutation{SetHeaders: set},
			Body:    openAIError(r.text, r.kind, d.Outcome.String()),
			Details: fmt.Sprintf("weir_%s", d.Outcome),
		}},
		DynamicMetadata: namespaces(d),
	}
}

// openAIError is the error object that OpenAI's clients read.
func openAIError(message, kind, code string) []byte {
	type object struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	b, err := json.Marshal(struct {
		Error object `json:"error"`
	}{object{message, kind, nil, code}})
	if err != nil {
		panic(err) // strings always marshal
	}
	return b
}
