package extproc

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirproxy/weir/pkg/route"
)

// pass is a request that goes on: with a pick, or without one where decision is nil or has none.
type pass struct {
	decision *route.Decision
	remove   bool // the client named a destination: take it away
}

// common is the header mutation of a reply. A pick overwrites; without one a client's own is removed.
func (p *pass) common() *extprocv3.CommonResponse {
	if p == nil {
		return nil
	}
	m := &extprocv3.HeaderMutation{}
	switch {
	case p.picked():
		m.SetHeaders = []*corev3.HeaderValueOption{overwrite(destination, p.decision.Endpoints())}
	case p.remove:
		m.RemoveHeaders = []string{destination}
	default:
		return nil
	}
	return &extprocv3.CommonResponse{HeaderMutation: m}
}

func (p *pass) picked() bool {
	return p != nil && p.decision != nil && p.decision.State == route.Picked
}

// metadata is the pick for override_host, and the decision record for logs and stats.
func (p *pass) metadata() *structpb.Struct {
	if p == nil || p.decision == nil {
		return nil
	}
	return namespaces(p.decision)
}

// namespaces is the dynamic metadata of a decision: envoy.lb with the pick, and weir with the record.
func namespaces(d *route.Decision) *structpb.Struct {
	f := map[string]*structpb.Value{"weir": structpb.NewStructValue(record(d))}
	if d.State == route.Picked {
		f["envoy.lb"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			destination: structpb.NewStringValue(d.Endpoints()),
		}})
	}
	return &structpb.Struct{Fields: f}
}

// overwrite sets a header to exactly one value: Envoy's default action may append.
func overwrite(key, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: key, RawValue: []byte(value)},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

func requestHeadersReply(p *pass) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{
		Response:        &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: &extprocv3.HeadersResponse{Response: p.common()}},
		DynamicMetadata: p.metadata(),
	}
}

func requestBodyReply(p *pass) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{
		Response:        &extprocv3.ProcessingResponse_RequestBody{RequestBody: &extprocv3.BodyResponse{Response: p.common()}},
		DynamicMetadata: p.metadata(),
	}
}

// requestTrailersReply cannot change headers any more: a pick goes by metadata alone.
func requestTrailersReply(p *pass) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{
		Response:        &extprocv3.ProcessingResponse_RequestTrailers{RequestTrailers: &extprocv3.TrailersResponse{}},
		DynamicMetadata: p.metadata(),
	}
}

// echoReply gives a piece of a FULL_DUPLEX_STREAMED request body back unchanged.
func echoReply(body []byte, end bool) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{
		RequestBody: &extprocv3.BodyResponse{Response: streamed(body, end)},
	}}
}

func responseEcho(body []byte, end bool) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseBody{
		ResponseBody: &extprocv3.BodyResponse{Response: streamed(body, end)},
	}}
}

func streamed(body []byte, end bool) *extprocv3.CommonResponse {
	return &extprocv3.CommonResponse{BodyMutation: &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_StreamedResponse{
		StreamedResponse: &extprocv3.StreamedBodyResponse{Body: body, EndOfStream: end},
	}}}
}

// holdReply has Envoy's per-message timer run for d from now. Envoy takes one per message.
func holdReply(d time.Duration) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{OverrideMessageTimeout: durationpb.New(d)}
}

func responseHeadersReply() *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{
		Response: &extprocv3.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extprocv3.HeadersResponse{}},
	}
}

func responseBodyReply() *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{
		Response: &extprocv3.ProcessingResponse_ResponseBody{ResponseBody: &extprocv3.BodyResponse{}},
	}
}

func responseTrailersReply() *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{
		Response: &extprocv3.ProcessingResponse_ResponseTrailers{ResponseTrailers: &extprocv3.TrailersResponse{}},
	}
}
