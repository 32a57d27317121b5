package extproc_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weirproxy/weir/pkg/extproc"
	"github.com/weirproxy/weir/pkg/route"
)

// lines is a log that a test reads while weir writes it.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// listening returns the address of a weir on a real socket that ends with the test, and its log.
func listening(t *testing.T) (address string, log *lines) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log = &lines{}
	s := extproc.NewServer(extproc.Default(), nil, nil, func(*route.Decision) {}, slog.New(slog.NewTextHandler(log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String(), log
}

func dial(t *testing.T, address string, c credentials.TransportCredentials) healthv1.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return healthv1.NewHealthClient(conn)
}

// TestHealthAndTLS is kgateway#11429 and gateway-api-inference-extension#786: the empty name and the service's own are
// healthy, another is not found, and a client that speaks TLS to the plaintext address is named in the log, once.
func TestHealthAndTLS(t *testing.T) {
	address, log := listening(t)
	client := dial(t, address, insecure.NewCredentials())
	for service, want := range map[string]codes.Code{"": codes.OK, "envoy.service.ext_proc.v3.ExternalProcessor": codes.OK, "x": codes.NotFound} {
		r, err := client.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
		if status.Code(err) != want || want == codes.OK && r.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("Check(%q): %v, %v", service, r, err)
		}
		w, err := client.Watch(t.Context(), &healthv1.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		watched := healthv1.HealthCheckResponse_SERVING
		if want != codes.OK {
			watched = healthv1.HealthCheckResponse_SERVICE_UNKNOWN
		}
		if r, err := w.Recv(); err != nil || r.GetStatus() != watched {
			t.Errorf("Watch(%q): %v, %v", service, r, err)
		}
	}
	if got := log.String(); got != "" {
		t.Errorf("a plaintext client is worth no line:\n%s", got)
	}
	for range 3 {
		tlsClient := dial(t, address, credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		if _, err := tlsClient.Check(ctx, &healthv1.HealthCheckRequest{}); status.Code(err) != codes.Unavailable {
			t.Errorf("TLS at the plaintext address: %v", err)
		}
		cancel()
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "a client speaks TLS") || !strings.Contains(got, "client=127.0.0.1:") {
		t.Errorf("log:\n%s", got)
	}
	if r, err := client.Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil || r.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("afterwards: %v, %v", r, err)
	}
}
