package envoy_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
)

// fixed are the header values that differ from run to run.
var fixed = map[string]string{
	"date":                          "Mon, 01 Jan 2024 00:00:00 GMT",
	"x-request-id":                  "00000000-0000-4000-8000-000000000000",
	"x-envoy-upstream-service-time": "1",
}

var address = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// scrub takes times, ids and ports out of a message: replica i of addrs becomes 127.0.0.1:800i, from 8001 on.
func scrub(m proto.Message, addrs []string) {
	plain := func(text string) string {
		return address.ReplaceAllStringFunc(text, func(at string) string {
			if i := slices.Index(addrs, at); i >= 0 {
				return fmt.Sprintf("127.0.0.1:%d", 8001+i)
			}
			return "127.0.0.1:10000"
		})
	}
	walk(m.ProtoReflect(), func(m protoreflect.Message) {
		switch v := m.Interface().(type) {
		case *corev3.HeaderValue:
			if text, ok := fixed[v.Key]; ok {
				v.RawValue = []byte(text)
			}
			v.RawValue = []byte(plain(string(v.RawValue)))
		case *structpb.Value:
			if s, ok := v.Kind.(*structpb.Value_StringValue); ok {
				s.StringValue = plain(s.StringValue)
			}
		}
	})
}

// walk calls f for a message and for each message in it.
func walk(m protoreflect.Message, f func(protoreflect.Message)) {
	f(m)
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			if fd.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					walk(v.Message(), f)
					return true
				})
			}
		case fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				walk(v.List().Get(i).Message(), f)
			}
		default:
			walk(v.Message(), f)
		}
		return true
	})
}

// shapes describes each message of Envoy's by the fields that are set. Body messages that follow each other count as
// one, as how a body is cut is chance; whether its end is marked on the last is not.
func shapes(messages []proto.Message) (all []string) {
	body := -1
	for _, m := range messages {
		r, ok := m.(*extprocv3.ProcessingRequest)
		if !ok {
			continue
		}
		s := shape(r)
		if b := r.GetRequestBody(); b == nil {
			body = -1
		} else if s = fmt.Sprintf("request_body end_of_stream=%v", b.EndOfStream); body >= 0 {
			all[body] = s
			continue
		} else {
			body = len(all)
		}
		all = append(all, s)
	}
	return all
}

func shape(r *extprocv3.ProcessingRequest) string {
	var fields []string
	add := func(format string, args ...any) { fields = append(fields, fmt.Sprintf(format, args...)) }
	r.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		add("%s", fd.Name())
		return true
	})
	for filter, s := range r.Attributes {
		for name := range s.GetFields() {
			add("%s/%s", filter, name)
		}
	}
	for _, h := range []*extprocv3.HttpHeaders{r.GetRequestHeaders(), r.GetResponseHeaders()} {
		for _, v := range h.GetHeaders().GetHeaders() {
			add("%s value=%v raw_value=%v", v.Key, v.Value != "", len(v.RawValue) > 0)
		}
		if h.GetEndOfStream() {
			add("end_of_stream")
		}
	}
	if c := r.GetProtocolConfig(); c != nil {
		add("modes %v %v", c.RequestBodyMode, c.ResponseBodyMode)
	}
	slices.Sort(fields)
	return strings.Join(fields, ", ")
}
