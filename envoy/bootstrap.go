package envoy

import (
	_ "embed"
	"fmt"
	"net"
	"strconv"
	"strings"
)

//go:embed bootstrap.yaml
var bootstrap string

// Mode is the way in which a request body reaches weir.
type Mode string

// The two modes that weir supports; bootstrap.yaml says what each costs.
const (
	Buffered Mode = "buffered"
	Streamed Mode = "streamed" // FULL_DUPLEX_STREAMED
)

// The modes in which weir sees less; docs/modes.md tells what comes of it.
const (
	Partial       Mode = "partial" // BUFFERED_PARTIAL
	None          Mode = "none"
	PlainStreamed Mode = "plain-streamed" // STREAMED
)

// Name returns Envoy's name for the mode, such as BUFFERED; empty if there is no such mode.
func (m Mode) Name() string {
	return map[Mode]string{Buffered: "BUFFERED", Streamed: "FULL_DUPLEX_STREAMED", Partial: "BUFFERED_PARTIAL", None: "NONE", PlainStreamed: "STREAMED"}[m]
}

// Params says where a configuration departs from bootstrap.yaml. A zero field keeps what the file says.
type Params struct {
	Front, Plain, Admin, WeirAdmin int      // ports: through weir, without weir, Envoy's admin, weir's admin
	Replicas                       []string // "ip:port" of each, in both clusters; IPv6 as "[::1]:8001"
	Socket                         string   // weir's unix socket; relative to the directory of both processes
	Mode                           Mode
}

// Bootstrap returns bootstrap.yaml with the Params in place. It fails when a line to be replaced is not in the file as
// often as expected, or when a Param is malformed.
func Bootstrap(p Params) ([]byte, error) {
	e := editor{text: bootstrap}
	for _, port := range []struct {
		old string
		new int
	}{{"port_value: 10000", p.Front}, {"port_value: 10001", p.Plain}, {"port_value: 9901", p.Admin}} {
		if port.new != 0 {
			e.replace(port.old, fmt.Sprintf("port_value: %d", port.new), 1)
		}
	}
	if p.WeirAdmin != 0 {
		e.replace("admin: 127.0.0.1:9902", fmt.Sprintf("admin: 127.0.0.1:%d", p.WeirAdmin), 1)
	}
	if p.Socket != "" {
		e.replace("pipe: {path: weir.sock}", fmt.Sprintf("pipe: {path: %q}", p.Socket), 1)
	}
	e.replicas(p.Replicas)
	e.mode(p.Mode)
	return []byte(e.text), e.err
}

// Replace returns config with new in the place of old, which must stand there exactly once.
func Replace(config []byte, old, new string) ([]byte, error) {
	e := editor{text: string(config)}
	e.replace(old, new, 1)
	return []byte(e.text), e.err
}

// editor applies replacements until the first that fails.
type editor struct {
	text string
	err  error
}

func (e *editor) replace(old, new string, want int) {
	if e.err != nil {
		return
	}
	if n := strings.Count(e.text, old); n != want {
		e.err = fmt.Errorf("bootstrap: %q stands there %d times, not %d", old, n, want)
		return
	}
	e.text = strings.ReplaceAll(e.text, old, new)
}

// replicas replaces the four endpoints that both replica clusters list.
func (e *editor) replicas(endpoints []string) {
	if len(endpoints) == 0 {
		return
	}
	var old, new strings.Builder
	for port := 8001; port <= 8004; port++ {
		writeEndpoint(&old, "127.0.0.1", port)
	}
	for _, ep := range endpoints {
		host, text, err := net.SplitHostPort(ep)
		port, perr := strconv.Atoi(text)
		if (err != nil || perr != nil) && e.err == nil {
			e.err = fmt.Errorf("bootstrap: replica %q is not ip:port", ep)
		}
		writeEndpoint(&new, host, port)
	}
	e.replace(old.String(), new.String(), 2)
}

func writeEndpoint(b *strings.Builder, host string, port int) {
	if strings.Contains(host, ":") {
		host = strconv.Quote(host) // a bare IPv6 address is a mapping to YAML
	}
	fmt.Fprintf(b, "        - endpoint: {address: {socket_address: {address: %s, port_value: %d}}}\n", host, port)
}

func (e *editor) mode(m Mode) {
	switch m {
	case "", Buffered:
	case Streamed: // as the comment below these lines in the file tells people to
		e.replace("                request_body_mode: BUFFERED\n                request_trailer_mode: SKIP\n", "", 1)
		e.replace("# request_body_mode: FULL_DUPLEX_STREAMED", "request_body_mode: FULL_DUPLEX_STREAMED", 1)
		e.replace("# request_trailer_mode: SEND ", "request_trailer_mode: SEND ", 1)
	default:
		if m.Name() == "" {
			e.err = fmt.Errorf("bootstrap: there is no mode %q", m)
			return
		}
		e.replace("request_body_mode: BUFFERED\n", "request_body_mode: "+m.Name()+"\n", 1)
	}
}
