package envoy_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/weirproxy/weir/envoy"
)

// pickHeader is where weir's pick travels, and what a client must not be able to set.
const pickHeader = "x-gateway-destination-endpoint"

// eachVersion runs a test with the oldest and the newest supported Envoy. Without one of them the test fails.
func eachVersion(t *testing.T, test func(t *testing.T, path string)) {
	for _, version := range []string{envoy.Oldest, envoy.Newest} {
		t.Run(version, func(t *testing.T) {
			test(t, find(t, version))
		})
	}
}

func find(t *testing.T, version string) string {
	t.Helper()
	path, err := envoy.Find(version)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func bootstrap(t *testing.T, p envoy.Params, edits ...string) []byte {
	t.Helper()
	config, err := envoy.Bootstrap(p)
	for ; err == nil && len(edits) > 0; edits = edits[2:] {
		config, err = envoy.Replace(config, edits[0], edits[1])
	}
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func start(t *testing.T, o envoy.Options) *envoy.Proc {
	t.Helper()
	p, err := envoy.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("log of Envoy:\n%s", p.Log())
		}
	})
	return p
}

// params has ports that are free.
func params(t *testing.T) envoy.Params {
	t.Helper()
	ports, err := envoy.FreePorts(4)
	if err != nil {
		t.Fatal(err)
	}
	return envoy.Params{Front: ports[0], Plain: ports[1], Admin: ports[2], WeirAdmin: ports[3]}
}

// spread posts n bodies, one after the other, and wants each to arrive once and have a 200. It returns how many each
// backend has seen, and how many had a pick on them there.
func (r *rig) spread(t *testing.T, n int, url, pick string) (counts []int, picks int) {
	t.Helper()
	counts = make([]int, len(r.addrs))
	for i := range n {
		body := fmt.Sprintf("request %d", i)
		req := newRequest(t, "POST", url, body)
		if pick != "" {
			req.Header.Set(pickHeader, pick)
		}
		got, s := exchange(t, http.DefaultClient, req), r.oneSeen(t)
		if got.status != 200 || got.body != ok || s.hash != sha256.Sum256([]byte(body)) {
			t.Fatalf("%s: status %d, body %q; %d bytes of %q arrive", url, got.status, got.body, s.size, body)
		}
		counts[slices.Index(r.addrs, s.at)]++
		if len(s.picks) > 0 {
			picks++
		}
	}
	return counts, picks
}
