package envoy_test

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/envoy"
)

type stage struct {
	name string
	run  func(t *testing.T, r *rig)
}

// The stages of TestThroughEnvoy, by the weir that they need.
var (
	routing = []stage{
		{"picked is served", pickedIsServed},
		{"bytes arrive as sent", bytesArrive},
		{"compressed bodies are read and arrive as they were sent", compressedArrive},
		{"requests without a body", withoutBody},
		{"a client names no host", clientNamesNoHost},
		{"a busy replica is avoided", busyIsAvoided},
		{"a retry goes to the second", retryGoesToSecond},
		{"a lease lives as long as its answer", leaseLivesAsAnswer},
		{"an abort returns the lease", abortReturnsLease},
		{"too large is 413", tooLarge},
		{"header values", headerValues},
	}
	holding = []stage{ // one seat per replica
		{"a held request goes on when a seat is free", heldGoesOn},
		{"a held client leaves", heldClientLeaves},
		{"a deadline is 429", deadlineIs429},
	}
)

// TestThroughEnvoy sends requests through a real Envoy, old and new, in both modes: one Envoy each, and one weir after
// the other behind it. The last is bin/weir with the file that Envoy reads, which is killed.
func TestThroughEnvoy(t *testing.T) {
	weir := build(t)
	eachVersion(t, func(t *testing.T, path string) {
		eachMode(t, path, rigOptions{edits: append([]string{"{profile: 8B}", "{profile: 8B, seats: 1}"}, shortTimeouts...)}, func(t *testing.T, r *rig) {
			r.serve(t, 0)
			r.stages(t, routing)
			r.edge.stop()
			r.serve(t, 1)
			r.stages(t, holding)
			r.edge.stop()
			t.Run("weir is killed and comes back", func(t *testing.T) { killed(t, r, weir) })
		})
	})
}

// eachMode starts an Envoy in each mode, and runs a test over both at once: most of its time it waits.
func eachMode(t *testing.T, path string, o rigOptions, test func(t *testing.T, r *rig)) {
	t.Helper()
	for _, o.mode = range []envoy.Mode{envoy.Buffered, envoy.Streamed} {
		r := startRig(t, path, o) // before there is traffic, which takes ports
		t.Run(string(o.mode), func(t *testing.T) {
			t.Parallel()
			test(t, r)
		})
	}
}

func (r *rig) stages(t *testing.T, all []stage) {
	t.Helper()
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			defer r.settle(t) // also where it fails: the next stage counts from zero
			s.run(t, r)
		})
	}
}

// build returns the path of the command weir, built for the test.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir")
	if out, err := exec.Command("go", "build", "-o", path, "../cmd/weir").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// TestClassFromMetadata has a filter before weir put claims into dynamic metadata, as jwt_authn does, which weir is sent
// where forwarding_namespaces lists them: the class there holds, and a client can only lower it.
func TestClassFromMetadata(t *testing.T) {
	const (
		filter  = "          - name: envoy.filters.http.ext_proc\n"
		options = "metadata_options: {"
		claims  = `          - name: envoy.filters.http.set_metadata
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config
              metadata: [{metadata_namespace: jwt, value: {claims: {class: bulk}}}]
`
	)
	eachVersion(t, func(t *testing.T, path string) {
		for _, c := range []struct{ namespaces, class string }{
			{"forwarding_namespaces: {untyped: [jwt]}, ", "bulk"},
			{"", "interactive"}, // not forwarded: weir does not see it
		} {
			r := startRig(t, path, rigOptions{mode: envoy.Buffered, edits: []string{filter, claims + filter, options, options + c.namespaces}})
			t.Run(c.class, func(t *testing.T) {
				t.Parallel()
				r.serve(t, 0)
				for _, wish := range []string{"", "interactive", "bulk"} {
					req := newRequest(t, "POST", r.front+"/v1/chat/completions", chat)
					req.Header.Set("x-weir-class", wish)
					exchange(t, http.DefaultClient, req)
					want := c.class
					if wish == "bulk" {
						want = wish
					}
					if e := r.oneEnded(t); e.Class != want || e.Status != 200 {
						t.Errorf("namespaces %q, header %q: class %s, status %d, want %s", c.namespaces, wish, e.Class, e.Status, want)
					}
					r.oneSeen(t)
				}
			})
		}
	})
}

// TestPickByOne is envoy#43708: override_host reads the pick from the header alone, and from the metadata alone, and weir
// sets it at the body.
func TestPickByOne(t *testing.T) {
	eachVersion(t, func(t *testing.T, path string) {
		for name, dropped := range map[string]string{
			"header":   "            - metadata: {key: envoy.lb, path: [{key: x-gateway-destination-endpoint}]}\n",
			"metadata": "            - header: x-gateway-destination-endpoint      # safe because the first filter removes a client's\n",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				eachMode(t, path, rigOptions{edits: []string{dropped, ""}}, func(t *testing.T, r *rig) {
					r.serve(t, 0)
					r.stages(t, []stage{
						{"a client names no host", clientNamesNoHost},
						{"requests without a body", withoutBody},
						{"a busy replica is avoided", busyIsAvoided},
					})
				})
			})
		}
	})
}

// TestContentLengthKept has FULL_DUPLEX_STREAMED keep it, where Envoy can.
func TestContentLengthKept(t *testing.T) {
	const off = "              # allow_content_length_header: true"
	r := startRig(t, find(t, envoy.Newest), rigOptions{mode: envoy.Streamed, edits: []string{off, strings.Replace(off, "# ", "", 1)}})
	r.serve(t, 0)
	for _, proto := range []string{"HTTP/1.1", "HTTP/2"} {
		if got := framing(proto)(t, r); got != "kept" {
			t.Errorf("%s: %s", proto, got)
		}
	}
}
