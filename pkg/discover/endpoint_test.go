package discover

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEndpointIsCanonical is gateway-api-inference-extension#1099: every spelling of an address is one endpoint or an error, and IPv6 is
// bracketed. IPv4 inside IPv6 is an error: Envoy 1.39.3 finds the host ::ffff:127.0.0.1 by that text only, and
// sends a pick of 127.0.0.1 to its fallback.
func TestEndpointIsCanonical(t *testing.T) {
	for _, c := range []struct {
		host string
		port int
		want string // empty: an error that holds reason
		why  string
	}{
		{"10.0.0.1", 8000, "10.0.0.1:8000", ""},
		{"::1", 8000, "[::1]:8000", ""},
		{"2001:db8::1", 8000, "[2001:db8::1]:8000", ""},
		{"2001:DB8::1", 8000, "[2001:db8::1]:8000", ""},
		{"2001:0db8:0:0:0:0:0:1", 8000, "[2001:db8::1]:8000", ""},
		{"::ffff:10.0.0.1", 8000, "", "give the IPv4 address"},
		{"::FFFF:0a00:0001", 8000, "", "give the IPv4 address"},
		{"::10.0.0.1", 8000, "", "give the IPv4 address"},
		{"10.0.0.1", 1, "10.0.0.1:1", ""},
		{"10.0.0.1", 65535, "10.0.0.1:65535", ""},
		{"fe80::1%eth0", 8000, "", "zone id"},
		{"[2001:db8::1]:8000", 8000, "", "not an IP address"},
		{"[2001:db8::1]", 8000, "", "not an IP address"},
		{"replica-1.example", 8000, "", "not an IP address"},
		{"http://10.0.0.1", 8000, "", "not an IP address"},
		{"10.0.0.1:8000", 8000, "", "not an IP address"},
		{"010.0.0.1", 8000, "", "not an IP address"},
		{"", 8000, "", "not an IP address"},
		{"0.0.0.0", 8000, "", "no address of a replica"},
		{"::", 8000, "", "no address of a replica"},
		{"10.0.0.1", 0, "", "port 0"},
		{"10.0.0.1", -1, "", "port -1"},
		{"10.0.0.1", 70000, "", "port 70000"},
	} {
		got, err := Endpoint(c.host, c.port)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("Endpoint(%q, %d) = %q, %v; want %q", c.host, c.port, got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("Endpoint(%q, %d): error %q does not say %q", c.host, c.port, err, c.why)
		}
	}
}

// TestParse holds what Parse itself refuses; the rest is Endpoint.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1:8000": "10.0.0.1:8000", "[2001:DB8::1]:8000": "[2001:db8::1]:8000",
		"10.0.0.1": "", "10.0.0.1:http": "", "2001:db8::1:8000": "", "http://10.0.0.1:8000": "", "10.0.0.1:70000": "", "": "",
		"10.0.0.1:+8000": "", ":+8000": "", ":8000": "", "10.0.0.1:0": "", "10.0.0.1:-1": "", "0.0.0.0:8000": "", "[::ffff:10.0.0.1]:8000": "", "replica:8000": "",
	} {
		if got, err := Parse(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestStaticReturnsAListWithoutDoubles(t *testing.T) {
	got, faults := Static([]Raw{{"10.0.0.2", 8000, 1}, {"10.0.0.1", 8000, 2}, {"10.0.0.1", 8001, 3}})
	if want := []string{"10.0.0.2:8000", "10.0.0.1:8000", "10.0.0.1:8001"}; faults != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, faults, want)
	}
	if got, faults := Static(nil); got != nil || faults != nil {
		t.Errorf("of nothing: got %v, %v", got, faults)
	}
}

func TestStaticReturnsEveryFault(t *testing.T) {
	got, faults := Static([]Raw{
		{"2001:db8::1", 8000, 1}, {"2001:DB8:0::1", 8000, 2}, {"10.0.0.1", 8000, 3}, {"10.0.0.1", 8000, 4},
		{"host", 8000, 5}, {"10.0.0.1", 0, 6},
	})
	want := []Fault{
		{2, "[2001:db8::1]:8000 stands twice, first on line 1"},
		{4, "10.0.0.1:8000 stands twice, first on line 3"},
		{5, `"host" is not an IP address`},
		{6, "port 0 is not between 1 and 65535"},
	}
	if !slices.Equal(got, []string{"[2001:db8::1]:8000", "10.0.0.1:8000"}) || !slices.Equal(faults, want) {
		t.Errorf("got %v and\n%v\nwant\n%v", got, faults, want)
	}
}

// FuzzEndpoint holds that what Endpoint returns is what the standard library dials, and formatting it again
// changes nothing.
func FuzzEndpoint(f *testing.F) {
	f.Add("10.0.0.1", 8000)
	f.Add("::ffff:10.0.0.1", 1)
	f.Add("fe80::1%eth0", 65535)
	f.Fuzz(func(t *testing.T, host string, port int) {
		e, err := Endpoint(host, port)
		if err != nil {
			return
		}
		ap, err := netip.ParseAddrPort(e)
		if err != nil || ap.String() != e || int(ap.Port()) != port {
			t.Fatalf("Endpoint(%q, %d) = %q, read back %v, %v", host, port, e, ap, err)
		}
		h, p, err := net.SplitHostPort(e)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Endpoint(h, port); again != e || err != nil || p != strconv.Itoa(port) {
			t.Fatalf("%q formatted again: %q, %v", e, again, err)
		}
	})
}
