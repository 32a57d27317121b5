package envoy_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/envoy"
)

func TestBootstrapValidates(t *testing.T) {
	eachVersion(t, func(t *testing.T, path string) {
		plain, err := os.ReadFile("bootstrap.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for name, config := range map[string][]byte{
			"as it stands": plain,
			"streamed":     bootstrap(t, envoy.Params{Mode: envoy.Streamed}),
			"other places": bootstrap(t, envoy.Params{Replicas: []string{"127.0.0.1:1", "[::1]:2"}, Socket: "/run/weir: 1.sock"}),
		} {
			if err := envoy.ValidateConfig(t.Context(), path, t.TempDir(), config); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		bad := bootstrap(t, envoy.Params{}, "failure_mode_allow: true", "failure_mode_allow: maybe")
		if err := envoy.ValidateConfig(t.Context(), path, t.TempDir(), bad); err == nil {
			t.Error("a bool of \"maybe\" passes")
		}
	})
}

func TestBootstrapDerives(t *testing.T) {
	config := string(bootstrap(t, envoy.Params{
		Front: 1, Plain: 2, Admin: 3, WeirAdmin: 4,
		Replicas: []string{"10.0.0.1:5", "[::1]:6"}, Socket: "other.sock", Mode: envoy.Streamed,
	}))
	for text, want := range map[string]int{
		"port_value: 1}}": 1, "port_value: 2}}": 1, "port_value: 3}}": 1, "admin: 127.0.0.1:4 ": 1,
		"address: 10.0.0.1, port_value: 5}": 2, `address: "::1", port_value: 6}`: 2,
		`{path: "other.sock"}`: 1, "\n                request_body_mode: FULL_DUPLEX_STREAMED": 1,
		"\n                request_trailer_mode: SEND": 1,
		// and nothing of what stood there before:
		"port_value: 1000": 0, "port_value: 990": 0, "port_value: 80": 0, "127.0.0.1:9902": 0, "weir.sock": 0,
		" request_body_mode: BUFFERED": 0, " request_trailer_mode: SKIP": 0,
	} {
		if got := strings.Count(config, text); got != want {
			t.Errorf("%q stands there %d times, want %d", text, got, want)
		}
	}
	file, err := os.ReadFile("bootstrap.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if same := bootstrap(t, envoy.Params{Mode: envoy.Buffered}); !bytes.Equal(same, file) {
		t.Error("zero Params change the file")
	}
}

func TestBootstrapRefuses(t *testing.T) {
	for _, p := range []envoy.Params{{Mode: "fast"}, {Replicas: []string{"10.0.0.1"}}, {Replicas: []string{"a:b"}}} {
		if _, err := envoy.Bootstrap(p); err == nil {
			t.Errorf("%+v passes", p)
		}
	}
	for _, old := range []string{"not in the file", "codec_type: AUTO"} { // absent, twice
		if _, err := envoy.Replace(bootstrap(t, envoy.Params{}), old, ""); err == nil || !strings.Contains(err.Error(), old) {
			t.Errorf("Replace of %q: %v, want an error that names it", old, err)
		}
	}
}

const (
	fair     = 80 // least_request over four idle replicas misses one of them in 80 requests once in 2e9 runs
	perShare = fair / 4
)

// TestWithoutWeir holds the fail-open of the bootstrap and that a client's own pick has no effect on it.
func TestWithoutWeir(t *testing.T) {
	eachVersion(t, func(t *testing.T, path string) {
		for _, mode := range []envoy.Mode{envoy.Buffered, envoy.Streamed} {
			t.Run(string(mode), func(t *testing.T) {
				r := startRig(t, path, rigOptions{mode: mode})
				for _, pick := range []string{"", r.addrs[0]} {
					if counts, picks := r.spread(t, fair, r.front, pick); slices.Min(counts) == 0 || picks != 0 {
						t.Errorf("pick %q: fallback served %v, want some on each; %d with the client's pick on them", pick, counts, picks)
					}
				}
				counts, picks := r.spread(t, fair, r.plain, r.addrs[0])
				if !slices.Equal(counts, []int{perShare, perShare, perShare, perShare}) {
					t.Errorf("round robin served %v, want %d each", counts, perShare)
				}
				if picks != fair {
					t.Errorf("the replicas see %d picks where nothing removes them, want %d", picks, fair)
				}
				checkAccessLog(t, r, 2*fair)
			})
		}
	})
}

// checkAccessLog wants one line for each request through the front, with a served replica and no decision of weir.
func checkAccessLog(t *testing.T, r *rig, want int) {
	t.Helper()
	lines := r.accessLog(t, "", want)
	if len(lines) != want {
		t.Fatalf("access log: %d lines, want %d", len(lines), want)
	}
	for _, line := range lines {
		var entry struct {
			Code   int
			Served string
			Weir   any
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("access log: %v in %s", err, line)
		}
		if entry.Code != 200 || !slices.Contains(r.addrs, entry.Served) || entry.Weir != nil {
			t.Fatalf("access log: %s", line)
		}
	}
}

// TestOverrideHost is the control of TestWithoutWeir: with the strip filter out of the way the very same header picks
// the host. It also shows that a retry takes the second of two.
func TestOverrideHost(t *testing.T) {
	eachVersion(t, func(t *testing.T, path string) {
		r := startRig(t, path, rigOptions{edits: []string{"[{remove: x-gateway-destination-endpoint}]", "[{remove: x-something-else}]"}})
		both := r.addrs[0] + "," + r.addrs[2]
		if counts, _ := r.spread(t, fair, r.front, both); !slices.Equal(counts, []int{fair, 0, 0, 0}) {
			t.Errorf("served %v, want all on the first", counts)
		}
		if counts, _ := r.spread(t, fair, r.front, "127.0.0.1:1,nonsense"); slices.Min(counts) == 0 {
			t.Errorf("no such host: served %v, want the fallback", counts)
		}
		r.backends[0].Close()
		if counts, _ := r.spread(t, fair, r.front, both); !slices.Equal(counts, []int{0, 0, fair, 0}) {
			t.Errorf("first gone: served %v, want all on the second", counts)
		}
	})
}
