package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// What a client's request holds that must be on no page and in no line.
const (
	marker = "SECRET-123"
	bearer = "TOKEN-456"
)

// TestNothingOfARequestIsOnAPage is gateway-api-inference-extension#1162: whatever a client sends, well formed, broken or
// too large, to an API of any dialect, a refusal is small and fixed, and neither the log at its lowest level nor any page of
// the admin listener has a word of it.
func TestNothingOfARequestIsOnAPage(t *testing.T) {
	s := newSite(t)
	_, log := s.process(t)
	broken := `{"model": "m", "messages": [{"role": "user", "content": "` + strings.Repeat(marker+" ", 5_000_000/len(marker))
	bodies := []string{broken, marker, `{"model": "m", "messages": [{"role": "user", "content": "` + marker + `"}], "system": "` + marker + `", "input": "` + marker + `"}`}
	for _, mode := range []filterv3.ProcessingMode_BodySendMode{filterv3.ProcessingMode_BUFFERED, filterv3.ProcessingMode_FULL_DUPLEX_STREAMED} {
		for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/v1/responses", "/rerank", "/" + marker} {
			for _, body := range bodies {
				s.exchange(t, mode, path, "", body)
			}
			r := s.exchange(t, mode, path, "99999999999", "") // over the limit by its Content-Length: refused
			if text := string(r.GetImmediateResponse().GetBody()); text == "" || len(text) > 300 || strings.Contains(text, marker) || strings.Contains(text, bearer) {
				t.Errorf("%v, %s: the refusal is %q", mode, path, text)
			}
		}
	}
	until(t, "all requests are counted", func() bool { return s.value(t, "weir_streams") == 0 })
	for _, page := range []string{"/metrics", "/debug/pool", "/debug/gate", "/debug/knee", "/debug/estimates", "/readyz", "/"} {
		if text, err := s.get(page); err != nil || strings.Contains(text, marker) || strings.Contains(text, bearer) {
			t.Errorf("%s: %v, and of a request it has\n%s", page, err, text)
		}
	}
	if text := log.String(); text == "" || strings.Contains(text, marker) || strings.Contains(text, bearer) {
		t.Errorf("the log:\n%s", text)
	}
	if n := s.value(t, "weir_body_bytes"); n != 0 {
		t.Errorf("%v bytes of bodies are kept of requests that ended", n)
	}
	if n := s.value(t, "weir_body_bytes_limit"); n != 1536<<20 {
		t.Errorf("weir_body_bytes_limit is %v", n)
	}
}

// exchange plays one request in a body mode up to its pick or refusal, which it returns. Without a body only headers go.
func (s site) exchange(t *testing.T, mode filterv3.ProcessingMode_BodySendMode, path, length, body string) *extprocv3.ProcessingResponse {
	t.Helper()
	rpc, leave := s.stream(t)
	defer leave()
	var headers []*corev3.HeaderValue
	for _, h := range [][2]string{
		{":path", path + "?key=" + bearer}, {"content-length", length}, {"authorization", "Bearer " + bearer}, {"x-api-key", bearer},
		{"cookie", bearer}, {"x-weir-class", marker}, {"x-weir-deadline", marker}, {"content-type", marker},
	} {
		headers = append(headers, &corev3.HeaderValue{Key: h[0], RawValue: []byte(h[1])})
	}
	m := &extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{
			Headers: &corev3.HeaderMap{Headers: headers},
		}},
		ProtocolConfig: &extprocv3.ProtocolConfiguration{RequestBodyMode: mode},
		Attributes:     map[string]*structpb.Struct{"f": {Fields: map[string]*structpb.Value{"xds.cluster_name": structpb.NewStringValue("replicas")}}},
	}
	err := rpc.Send(m)
	for rest := body; err == nil && rest != ""; {
		n := len(rest)
		if mode == filterv3.ProcessingMode_FULL_DUPLEX_STREAMED {
			n = min(n, 64<<10)
		} else if _, err = rpc.Recv(); err != nil {
			break
		}
		err = rpc.Send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
			RequestBody: &extprocv3.HttpBody{Body: []byte(rest[:n]), EndOfStream: n == len(rest)},
		}})
		rest = rest[n:]
	}
	r, errRecv := rpc.Recv()
	if err = errors.Join(err, errRecv, rpc.CloseSend()); err != nil {
		t.Fatal(err)
	}
	for err == nil { // the echo
		_, err = rpc.Recv()
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return r
}
