// Package discover says where replicas are. An endpoint is an IP address and a port, written in one way only:
// as Envoy writes the hosts of a cluster, since a pick that it cannot find by that text becomes its fallback.
//
//	10.0.0.1:8000    [2001:db8::1]:8000
package discover

import (
	"fmt"
	"net/netip"
)

// embedded holds the IPv6 addresses that end in an IPv4 one and are no other: ::10.0.0.1, ::1 and ::.
var embedded = netip.MustParsePrefix("::/96")

// Endpoint formats an IP address and a port, 1 to 65535. IPv6 is bracketed, lower-case and shortest. Errors:
// host names, as weir resolves none; zone ids, which mean nothing on another machine; and IPv4 inside IPv6
// (::ffff:10.0.0.1), which Envoy keeps apart from 10.0.0.1, so that one replica could be listed as two.
func Endpoint(host string, port int) (string, error) {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return "", fmt.Errorf("%q is not an IP address", host)
	}
	if port < 1 || port > 65535 {
		return "", fmt.Errorf("port %d is not between 1 and 65535", port)
	}
	return replica(netip.AddrPortFrom(addr, uint16(port)))
}

// replica is Endpoint of what is an address.
func replica(at netip.AddrPort) (string, error) {
	addr := at.Addr()
	host := addr.String()
	switch {
	case addr.Zone() != "":
		return "", fmt.Errorf("%q has a zone id, which is unknown on other machines", host)
	case addr.IsUnspecified():
		return "", fmt.Errorf("%q is no address of a replica", host)
	case addr.Is4In6(), embedded.Contains(addr) && !addr.IsLoopback():
		return "", fmt.Errorf("%q is IPv4 inside IPv6: give the IPv4 address", host)
	}
	return at.String(), nil
}

// Parse is Endpoint of a text such as 10.0.0.1:8000 or [2001:db8::1]:8000.
func Parse(text string) (string, error) {
	at, err := AddrPort(text)
	if err != nil {
		return "", err
	}
	return replica(at)
}

// AddrPort reads such a text, with a port from 1 on, for whatever address: one to listen on may be 0.0.0.0.
func AddrPort(text string) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(text)
	if err != nil || at.Port() == 0 {
		return netip.AddrPort{}, fmt.Errorf("%q is not ip:port", text)
	}
	return at, nil
}

// Raw is an endpoint as a file has it.
type Raw struct {
	Host string
	Port int
	Line int // where it stands
}

// Fault is what is wrong with the Raw on a line.
type Fault struct {
	Line int
	Text string
}

// Static returns the endpoints of a fixed list in their order, each formatted by Endpoint, and every fault of
// the list. An address that stands twice, in whatever spelling, is a fault: its load would count twice.
func Static(list []Raw) (all []string, faults []Fault) {
	first := map[string]int{}
	for _, r := range list {
		e, err := Endpoint(r.Host, r.Port)
		switch {
		case err != nil:
			faults = append(faults, Fault{r.Line, err.Error()})
		case first[e] != 0:
			faults = append(faults, Fault{r.Line, fmt.Sprintf("%s stands twice, first on line %d", e, first[e])})
		default:
			first[e] = r.Line
			all = append(all, e)
		}
	}
	return all, faults
}
