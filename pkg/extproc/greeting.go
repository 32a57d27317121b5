package extproc

import (
	"net"
	"time"

	"google.golang.org/grpc/credentials"
)

// plaintext is gRPC without TLS that says when a client begins with TLS: gRPC itself would end the connection in
// silence, and Envoy would only count a failed one.
type plaintext struct {
	credentials.TransportCredentials
	tls func(from net.Addr)
}

// ServerHandshake runs in the connection's own goroutine, not in the one that accepts.
func (p plaintext) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := p.TransportCredentials.ServerHandshake(raw)
	return &greeting{Conn: conn, tls: p.tls}, info, err
}

// greeting is a connection whose first bytes are looked at as they are read.
type greeting struct {
	net.Conn
	tls  func(from net.Addr)
	seen bool
}

// Read looks for a TLS handshake record: its type, and the first byte of every version since SSL 3.
func (g *greeting) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if !g.seen && n > 0 {
		g.seen = true
		if n > 1 && b[0] == 0x16 && b[1] == 0x03 {
			g.tls(g.RemoteAddr())
		}
	}
	return n, err
}

// greetedPause is the least time between two log lines about TLS: a client like that comes back.
const greetedPause = time.Minute

func (s *Server) greetedByTLS(from net.Addr) {
	now, last := time.Now().UnixNano(), s.warnedTLS.Load()
	if last != 0 && now-last < int64(greetedPause) || !s.warnedTLS.CompareAndSwap(last, now) {
		return
	}
	s.log.Error("a client speaks TLS, and weir's ext_proc address is plaintext: take transport_socket off the ext_proc cluster", "client", from.String())
}
