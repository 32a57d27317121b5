package extproc

import (
	"reflect"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestParseSource(t *testing.T) {
	for _, c := range []struct {
		text string
		want source
		ok   bool
	}{
		{"", source{}, true},
		{"header:x-tenant", source{header: "x-tenant"}, true},
		{"header:X-Tenant", source{header: "x-tenant"}, true},
		{"header:", source{}, false},
		{"header: x", source{}, false},
		{"header::authority", source{}, false},
		{"header:x\ttenant", source{}, false},
		{"header:ténant", source{}, false},
		{"Header:x", source{}, false},
		{"metadata:jwt:org", source{namespace: "jwt", path: []string{"org"}}, true},
		{"metadata:envoy.filters.http.jwt_authn:claims.Org.id", source{namespace: "envoy.filters.http.jwt_authn", path: []string{"claims", "Org", "id"}}, true},
		{"metadata:jwt:a:b", source{namespace: "jwt", path: []string{"a:b"}}, true},
		{"metadata:jwt:", source{}, false},
		{"metadata::org", source{}, false},
		{"metadata:jwt", source{}, false},
		{"metadata:jwt:.org", source{}, false},
		{"metadata:jwt:org.", source{}, false},
		{"x-tenant", source{}, false},
		{"cookie:id", source{}, false},
	} {
		got, err := parseSource(c.text)
		if !reflect.DeepEqual(got, c.want) || (err == nil) != c.ok {
			t.Errorf("%q: %+v, %v", c.text, got, err)
		}
	}
}

func TestSourceMetadata(t *testing.T) {
	long := strings.Repeat("x", 8<<10)
	value, err := structpb.NewStruct(map[string]any{
		"org": "acme", "n": 5.0, "long": long, "empty": "", "list": []any{"a"}, "claims": map[string]any{"org": map[string]any{"id": "deep"}, "class": "bulk"},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := &extprocv3.ProcessingRequest{MetadataContext: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"jwt": value, "nil": nil}}}
	for text, want := range map[string]string{
		"metadata:jwt:org": "acme", "metadata:jwt:claims.org.id": "deep", "metadata:jwt:claims.class": "bulk", "metadata:jwt:long": long[:128],
		"metadata:jwt:n": "", "metadata:jwt:empty": "", "metadata:jwt:list": "", "metadata:jwt:claims": "", "metadata:jwt:claims.org": "",
		"metadata:jwt:org.id": "", "metadata:jwt:none": "", "metadata:other:org": "", "metadata:nil:org": "", "": "", "header:org": "",
	} {
		s, err := parseSource(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.metadata(m); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := s.metadata(&extprocv3.ProcessingRequest{}); got != "" {
			t.Errorf("%q of a message without metadata: %q", text, got)
		}
	}
}
