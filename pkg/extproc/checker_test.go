package extproc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

const pickHeader = "x-gateway-destination-endpoint"

// checker holds weir's replies to what Envoy takes from a processor (as measured: a reply out of place is spurious to
// Envoy, which fails the request or goes on without the pick) and to what weir promises on top.
type checker struct {
	mode mode

	awaited  []string // kinds of replies that Envoy waits for, in order
	override bool     // one was sent for the message that is awaited now
	sentBody []byte
	echo     []byte
	bodyDone bool // the end of the echo was marked
	pick     string
	record   *structpb.Struct // of weir's decision
	refusal  *extprocv3.ImmediateResponse
}

func kindOf(m *extprocv3.ProcessingRequest) string {
	r := m.ProtoReflect()
	return string(r.WhichOneof(r.Descriptor().Oneofs().ByName("request")).Name())
}

func replyKind(m *extprocv3.ProcessingResponse) string {
	r := m.ProtoReflect()
	if fd := r.WhichOneof(r.Descriptor().Oneofs().ByName("response")); fd != nil {
		return string(fd.Name())
	}
	return ""
}

// sent notes a message of Envoy's, and the reply that it wants.
func (c *checker) sent(m *extprocv3.ProcessingRequest) {
	kind := kindOf(m)
	if b := m.GetRequestBody(); b != nil {
		if c.mode == streamed && len(b.Body) == 0 && !b.EndOfStream {
			return // as Envoy begins a tunnel: nothing is to come back
		}
		c.sentBody = append(c.sentBody, b.Body...)
		if slices.Contains(c.awaited, kind) { // pieces of one body
			return
		}
	}
	c.awaited = append(c.awaited, kind)
	c.override = false
}

// waits reports whether Envoy waits for a reply. In FULL_DUPLEX_STREAMED it does so when it has sent the body.
func (c *checker) waits() bool { return len(c.awaited) > 0 }

// got takes a reply.
func (c *checker) got(m *extprocv3.ProcessingResponse) error {
	if c.refusal != nil {
		return errors.New("a reply after an immediate response")
	}
	if err := c.metadata(m); err != nil {
		return err
	}
	kind := replyKind(m)
	switch {
	case m.ModeOverride != nil:
		return errors.New("a mode override")
	case m.OverrideMessageTimeout != nil:
		return c.overrides(m, kind)
	case kind == "immediate_response":
		c.refusal, c.awaited = m.GetImmediateResponse(), nil
		return checkRefusal(c.refusal)
	case len(c.awaited) == 0:
		return errors.New("a reply that nothing waits for")
	case kind != c.awaited[0]:
		return fmt.Errorf("a reply of kind %q where %s is awaited", kind, c.awaited[0])
	}
	common, done, err := c.common(m)
	if done {
		c.awaited = c.awaited[1:]
		c.override = false
	}
	return errors.Join(err, c.mutation(m, common))
}

// overrides takes an override_message_timeout, which must stand alone.
func (c *checker) overrides(m *extprocv3.ProcessingResponse, kind string) error {
	switch {
	case kind != "":
		return errors.New("an override with a reply")
	case c.mode == streamed:
		return errors.New("an override in FULL_DUPLEX_STREAMED, where there is no timer")
	case c.override:
		return errors.New("a second override for one message")
	case len(c.awaited) == 0:
		return errors.New("an override while no timer runs")
	}
	c.override = true
	return nil
}

// common returns the part that header and body replies share, and whether the reply completes its kind.
func (c *checker) common(m *extprocv3.ProcessingResponse) (*extprocv3.CommonResponse, bool, error) {
	switch r := m.Response.(type) {
	case *extprocv3.ProcessingResponse_RequestHeaders:
		return r.RequestHeaders.Response, true, noBody(r.RequestHeaders.Response)
	case *extprocv3.ProcessingResponse_RequestBody:
		if c.mode != streamed {
			return r.RequestBody.Response, true, noBody(r.RequestBody.Response)
		}
		done, err := c.echoed(r.RequestBody.Response)
		return r.RequestBody.Response, done, err
	case *extprocv3.ProcessingResponse_ResponseHeaders:
		return r.ResponseHeaders.Response, true, noBody(r.ResponseHeaders.Response)
	case *extprocv3.ProcessingResponse_ResponseBody:
		return r.ResponseBody.Response, true, nil
	}
	return nil, true, nil
}

func noBody(r *extprocv3.CommonResponse) error {
	if r.GetBodyMutation() != nil || r.GetStatus() != extprocv3.CommonResponse_CONTINUE || r.GetTrailers() != nil {
		return errors.New("more than a header mutation")
	}
	return nil
}

// echoed takes a piece of the body in FULL_DUPLEX_STREAMED. The echo is complete when its end is marked or, where
// trailers mark the end, when as many bytes came back as went.
func (c *checker) echoed(r *extprocv3.CommonResponse) (done bool, err error) {
	s := r.GetBodyMutation().GetStreamedResponse()
	switch {
	case s == nil:
		return false, errors.New("a body reply that is no streamed response")
	case r.GetHeaderMutation() != nil:
		return false, errors.New("a header mutation after the headers")
	case c.bodyDone:
		return false, errors.New("a body after its end")
	}
	if !bytes.HasPrefix(c.sentBody[len(c.echo):], s.Body) {
		return false, errors.New("the echo is not the body")
	}
	c.echo = append(c.echo, s.Body...)
	c.bodyDone = s.EndOfStream
	trailers := slices.Contains(c.awaited, "request_trailers")
	if s.EndOfStream && (trailers || len(c.echo) != len(c.sentBody)) {
		return false, errors.New("the echo ends before the body")
	}
	return s.EndOfStream || trailers && len(c.echo) == len(c.sentBody), nil
}

// mutation holds the one header mutation that weir makes: the pick, written once, the same as in the metadata.
func (c *checker) mutation(m *extprocv3.ProcessingResponse, r *extprocv3.CommonResponse) error {
	set, removed := r.GetHeaderMutation().GetSetHeaders(), r.GetHeaderMutation().GetRemoveHeaders()
	inMetadata := m.GetDynamicMetadata().GetFields()["envoy.lb"].GetStructValue().GetFields()[pickHeader].GetStringValue()
	if len(set) == 0 {
		if inMetadata != "" && replyKind(m) != "request_trailers" {
			return errors.New("the pick is in the metadata only")
		}
		if len(removed) > 0 && !slices.Equal(removed, []string{pickHeader}) {
			return fmt.Errorf("weir removes %v", removed)
		}
		return nil
	}
	if c.pick != "" || len(set) != 1 || len(removed) != 0 {
		return errors.New("more than one mutation")
	}
	h := set[0]
	c.pick = string(h.Header.RawValue)
	if h.Header.Key != pickHeader || h.Header.Value != "" || h.AppendAction != corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
		return fmt.Errorf("the pick is not written as raw_value of %s with OVERWRITE: %v", pickHeader, h)
	}
	if c.pick != inMetadata {
		return fmt.Errorf("the header says %q, the metadata %q", c.pick, inMetadata)
	}
	return checkPick(c.pick)
}

// checkPick holds that a pick is one or two different members of the pool.
func checkPick(pick string) error {
	hosts := strings.Split(pick, ",")
	for _, h := range hosts {
		if !slices.Contains(endpoints, h) {
			return fmt.Errorf("%q of the pick is no replica", h)
		}
	}
	if len(hosts) > 2 || len(hosts) == 2 && hosts[0] == hosts[1] {
		return fmt.Errorf("pick %q", pick)
	}
	return nil
}

// metadata holds the namespaces that Envoy is configured to take.
func (c *checker) metadata(m *extprocv3.ProcessingResponse) error {
	for name, value := range m.GetDynamicMetadata().GetFields() {
		if name == "weir" {
			c.record = value.GetStructValue()
		}
		if name != "envoy.lb" && name != "weir" {
			return fmt.Errorf("metadata namespace %s", name)
		}
	}
	return nil
}

// checkRefusal holds an answer of weir's own to what OpenAI's or Anthropic's clients read, or to a line of text for a
// path of no API.
func checkRefusal(r *extprocv3.ImmediateResponse) error {
	code := int(r.GetStatus().GetCode())
	if !slices.Contains([]int{413, 429, 501, 503}, code) {
		return fmt.Errorf("status %d", code)
	}
	headers := map[string]string{}
	for _, h := range r.GetHeaders().GetSetHeaders() {
		if h.Header.Value != "" || h.AppendAction != corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
			return fmt.Errorf("header %v", h)
		}
		headers[h.Header.Key] = string(h.Header.RawValue)
	}
	for _, h := range []string{"retry-after", "retry-after-ms"} {
		if _, ok := headers[h]; ok != (code == 429 || r.Details == "weir_stopped" || r.Details == "weir_no_memory") {
			return fmt.Errorf("%s %q with %d", h, headers[h], code)
		}
	}
	if headers["content-type"] == "text/plain; charset=utf-8" && bytes.HasSuffix(r.Body, []byte(".\n")) {
		return nil
	}
	if headers["content-type"] != "application/json" {
		return fmt.Errorf("content-type %q", headers["content-type"])
	}
	return checkError(r.Body)
}

// checkError holds a body to the error object of either API: nothing missing, nothing more.
func checkError(body []byte) error {
	var object struct {
		Type  string // of Anthropic's
		Error struct {
			Message, Type, Code string
			Param               *string
		}
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&object); err != nil {
		return err
	}
	anthropic := object.Type == "error" && object.Error.Code == ""
	openAI := object.Type == "" && object.Error.Code != ""
	if object.Error.Message == "" || object.Error.Type == "" || object.Error.Param != nil || anthropic == openAI {
		return fmt.Errorf("error object %s", body)
	}
	return nil
}
