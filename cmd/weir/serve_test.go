package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weirproxy/weir/envoy"
)

// limit is far above what any step here takes, so that only a hang reaches it.
const limit = 30 * time.Second

// site is a directory with a bootstrap file, its socket, weir's admin address and a replica that is away.
type site struct {
	dir, file, socket, admin, replica string
}

func newSite(t *testing.T) site {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir") // t.TempDir is longer than a socket's path may be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := site{dir, filepath.Join(dir, "envoy.yaml"), filepath.Join(dir, "weir.sock"), free(t), free(t)}
	config, err := envoy.Bootstrap(envoy.Params{
		WeirAdmin: int(netip.MustParseAddrPort(s.admin).Port()), Replicas: []string{s.replica}, Socket: s.socket,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// free returns a loopback address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start runs weir serve until stop; stop returns its exit status and its log.
func (s site) start(t *testing.T) (stop func() (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"serve", "--bootstrap", s.file}, io.Discard, &stderr) }()
	t.Cleanup(cancel)
	s.await(t)
	return func() (int, string) {
		cancel()
		select {
		case code := <-ended:
			return code, stderr.String()
		case <-time.After(limit):
			t.Fatal("weir did not stop")
			return 0, ""
		}
	}
}

func (s site) get(path string) (string, error) {
	resp, err := http.Get("http://" + s.admin + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(body)), err
}

// await returns when weir takes requests. Its replicas may be away.
func (s site) await(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if got, err := s.get("/readyz"); err == nil && !strings.Contains(got, "does not take requests") {
			return
		}
	}
	t.Fatal("weir was not ready in time")
}

// healthy asks weir as Envoy's health check does.
func (s site) healthy(t *testing.T) healthv1.HealthCheckResponse_ServingStatus {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+s.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	resp, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetStatus()
}

func TestServeRunsAndStops(t *testing.T) {
	s := newSite(t)
	stop := s.start(t)
	if got := s.healthy(t); got != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("health: %v", got)
	}
	for path, part := range map[string]string{
		"/debug/pool": `"pool": "replicas"`, "/metrics": "weir_streams 0", "/healthz": "200",
	} {
		if got, err := s.get(path); err != nil || !strings.Contains(got, part) {
			t.Errorf("%s: %v, without %q:\n%s", path, err, part, got)
		}
	}
	if code, log := stop(); code != 0 {
		t.Errorf("status %d:\n%s", code, log)
	}
	if _, err := os.Lstat(s.socket); err == nil {
		t.Error("the socket file is left")
	}
	if _, err := s.get("/healthz"); err == nil {
		t.Error("the admin listener is left")
	}
}

// TestScrapesAreCounted waits for one failed scrape of the replica that is away. Then weir is not ready, and yet healthy to
// Envoy, which would let all requests past the gate otherwise.
func TestScrapesAreCounted(t *testing.T) {
	s := newSite(t)
	stop := s.start(t)
	series := `weir_scrape_failures_total{endpoint="` + s.replica + `",pool="replicas"} `
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		page, err := s.get("/metrics")
		_, value, found := strings.Cut(page, series)
		if err != nil || !found || time.Now().After(end) {
			t.Fatalf("%v, no failure counted at %s in\n%s", err, series, page)
		}
		if !strings.HasPrefix(value, "0") {
			break
		}
	}
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		got, err := s.get("/readyz")
		if strings.HasPrefix(got, "503") && strings.Contains(got, "0 of 1 replicas usable") {
			break
		}
		if err != nil || time.Now().After(end) {
			t.Fatalf("without a replica: %v, %s", err, got)
		}
	}
	if got := s.healthy(t); got != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("without a replica: %v", got)
	}
	if code, log := stop(); code != 0 {
		t.Errorf("status %d:\n%s", code, log)
	}
}

func TestSocketFiles(t *testing.T) {
	t.Run("that a killed weir left is replaced", func(t *testing.T) {
		s := newSite(t)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.socket})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
		stop := s.start(t)
		if got := s.healthy(t); got != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("health: %v", got)
		}
		if code, log := stop(); code != 0 {
			t.Errorf("status %d:\n%s", code, log)
		}
	})
	t.Run("of a weir that runs stays", func(t *testing.T) {
		s, other := newSite(t), newSite(t)
		stop := s.start(t)
		text, err := os.ReadFile(other.file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(other.file, bytes.ReplaceAll(text, []byte(other.socket), []byte(s.socket)), 0o600); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		if code := run(t.Context(), []string{"serve", "--bootstrap", other.file}, io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), "another process listens there") {
			t.Errorf("the second: status %d:\n%s", code, &stderr)
		}
		if got := s.healthy(t); got != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("the first: %v", got)
		}
		if code, log := stop(); code != 0 {
			t.Errorf("status %d:\n%s", code, log)
		}
	})
	t.Run("that are none stay", func(t *testing.T) {
		s := newSite(t)
		if err := os.WriteFile(s.socket, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		if code := run(t.Context(), []string{"serve", "--bootstrap", s.file}, io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), "is no socket") {
			t.Errorf("status %d:\n%s", code, &stderr)
		}
		if text, err := os.ReadFile(s.socket); string(text) != "precious" {
			t.Errorf("the file is gone: %v", err)
		}
	})
}

// TestATakenAdminPortStopsTheStart also sees that what was started before is stopped.
func TestATakenAdminPortStopsTheStart(t *testing.T) {
	s := newSite(t)
	l, err := net.Listen("tcp", s.admin)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"serve", "--bootstrap", s.file}, io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), s.admin) {
		t.Errorf("status %d:\n%s", code, &stderr)
	}
	if _, err := os.Lstat(s.socket); err == nil {
		t.Error("the socket file is left")
	}
}

// TestSignalsStopTheProcess runs weir as a process of its own.
func TestSignalsStopTheProcess(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		s := newSite(t)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "serve", "--bootstrap", s.file, "-log-format", "json")
		cmd.Env = append(os.Environ(), "WEIR_TEST_MAIN=1")
		var log bytes.Buffer
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.await(t)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v\n%s", sig, err, &log)
		}
		if !strings.HasPrefix(log.String(), `{"time":`) {
			t.Errorf("the log is not JSON:\n%s", &log)
		}
	}
}
