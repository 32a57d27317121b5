package extproc_test

import (
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirproxy/weir/pkg/route"
)

// claim puts a value into the dynamic metadata that comes with the call's headers, under jwt and claims.
func (c *call) claim(key, value string) {
	v, err := structpb.NewStruct(map[string]any{"claims": map[string]any{key: value}})
	if err != nil {
		c.f.t.Fatal(err)
	}
	c.tmpl["request_headers"].MetadataContext = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"jwt": v}}
}

// inOrder holds a request of each name, frees one seat, ends each as soon as it is released and returns their names in
// the order of that.
func (f *fake) inOrder(m mode, names string, name func(c *call, name string) []string) string {
	busy, first := f.fill(m)
	var calls []*call
	for _, n := range names {
		c := f.call(m)
		c.request(chatBody, name(c, string(n))...)
		calls = append(calls, c)
		if held := f.held(); held != len(calls)+1 {
			f.t.Fatalf("%d held, want %d", held, len(calls)+1)
		}
	}
	first.cancel()
	f.held()
	var mu sync.Mutex
	var order strings.Builder
	var over sync.WaitGroup
	for i, c := range calls {
		over.Go(func() {
			c.replies()
			mu.Lock()
			order.WriteByte(names[i])
			mu.Unlock()
			c.answer("200", pickOf(c))
			c.close()
		})
	}
	busy[0].close()
	over.Wait()
	for _, c := range busy[1:] {
		c.close()
	}
	if n := outcomes(f.take()); n[route.Answered] != len(names)+len(busy) || n[route.LeftHeld] != 1 {
		f.t.Errorf("outcomes %v", n)
	}
	return order.String()
}

// TestFlow is llm-d-async PR#380: tenants share by the source that is configured, and by nothing else that a client sends.
func TestFlow(t *testing.T) {
	const came = "aaaabbc"
	header := func(names ...string) func(*call, string) []string {
		return func(_ *call, tenant string) (headers []string) {
			for _, name := range names {
				headers = append(headers, name, tenant)
			}
			return headers
		}
	}
	claim := func(c *call, tenant string) []string {
		c.claim("org", tenant)
		return []string{"x-tenant", "other"}
	}
	for _, tc := range []struct {
		name, flow string
		headers    func(*call, string) []string
		want       string
	}{
		{"no source: first come", "", header("x-tenant", "x-flow", "x-weir-flow"), came},
		{"the header", "header:X-Tenant", header("x-tenant"), "abcabaa"},
		{"another header", "header:x-tenant", header("x-user", "x-flow"), came},
		{"the metadata, whatever headers say", "metadata:jwt:claims.org", claim, "abcabaa"},
		{"metadata that is not there", "metadata:jwt:claims.team", claim, came},
		{"no metadata, but a header", "metadata:jwt:claims.org", header("claims.org", "org", "x-tenant"), came},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachMode(t, options{seats: 1, flow: tc.flow}, func(f *fake, m mode) {
				if got := f.inOrder(m, came, tc.headers); got != tc.want {
					f.t.Errorf("released in the order %s, want %s", got, tc.want)
				}
			})
		})
	}
}

// TestClassFrom holds that a JWT's claim sets the class, that the route bounds it, and that a client may only lower it.
func TestClassFrom(t *testing.T) {
	for _, tc := range []struct {
		name, claim, header, route string
		want                       string
	}{
		{"the claim", "bulk", "", "", "bulk"},
		{"a client cannot raise it", "bulk", "interactive", "", "bulk"},
		{"a client lowers it", "interactive", "bulk", "", "bulk"},
		{"the route bounds it", "interactive", "", "bulk", "bulk"},
		{"no claim", "", "", "", "interactive"},
		{"an unknown one", "gold", "", "", "interactive"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachMode(t, options{classFrom: "metadata:jwt:claims.class"}, func(f *fake, m mode) {
				c := f.call(m, "weir-class", tc.route)
				if tc.claim != "" {
					c.claim("class", tc.claim)
				}
				c.request(chatBody, "x-weir-class", tc.header)
				c.replies()
				c.close()
				if d := f.one(); d.Class != tc.want {
					f.t.Errorf("class %s, want %s", d.Class, tc.want)
				}
			})
		})
	}
	withFake(t, options{}, func(f *fake) { // no source: a claim is nothing
		c := f.call(buffered)
		c.claim("class", "bulk")
		c.request(chatBody)
		c.replies()
		c.close()
		if d := f.one(); d.Class != "interactive" {
			f.t.Errorf("class %s", d.Class)
		}
	})
}
