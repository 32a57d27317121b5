package envoy_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
)

func TestFindPrefersENVOY(t *testing.T) {
	oldest, newest := find(t, envoy.Oldest), find(t, envoy.Newest)
	t.Setenv("ENVOY", oldest)
	for version, want := range map[string]string{"": oldest, envoy.Oldest: oldest, envoy.Newest: newest} {
		if got := find(t, version); got != want {
			t.Errorf("Find(%q) = %s, want %s", version, got, want)
		}
	}
	for version, path := range map[string]string{envoy.Oldest: oldest, envoy.Newest: newest} {
		if got, err := envoy.Version(path); got != version || err != nil {
			t.Errorf("Version(%s) = %q, %v; want %s", path, got, err, version)
		}
	}
}

// fakeEnvoy is a program that knows its version and nothing else.
func fakeEnvoy(t *testing.T, dir, version string) string {
	t.Helper()
	path := filepath.Join(dir, "envoy")
	text := "#!/bin/sh\necho 'envoy  version: 0123/" + version + "/Clean/RELEASE/BoringSSL'\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFindOnPath(t *testing.T) {
	fallback := find(t, envoy.Newest)
	for _, tc := range []struct {
		version string
		fits    bool
	}{{"1.35.9", false}, {"1.36.0", true}, {"1.100.2", true}, {"2.0.0", true}} {
		dir := t.TempDir()
		want := fakeEnvoy(t, dir, tc.version)
		if !tc.fits {
			want = fallback
		}
		t.Setenv("ENVOY", "")
		t.Setenv("PATH", dir+":/usr/bin:/bin")
		if got := find(t, ""); got != want {
			t.Errorf("with envoy %s on PATH: Find = %s, want %s", tc.version, got, want)
		}
	}
}

// TestFindSaysWhy holds that a machine without an Envoy learns what to do.
func TestFindSaysWhy(t *testing.T) {
	old := fakeEnvoy(t, t.TempDir(), "1.20.0")
	bare := t.TempDir() // a PATH with what get.sh needs, but without python3
	for _, tool := range []string{"sh", "dirname", "head", "tail", "sort", "sed", "mktemp", "mkdir", "rm", "cat"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bare, tool)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ env, path, version, want string }{
		{"/no/such/envoy", os.Getenv("PATH"), "", "does not run"},
		{old, os.Getenv("PATH"), "", "is 1.20.0; weir needs 1.36"},
		{"", bare, "1.36.999", "set ENVOY="},
	} {
		t.Setenv("ENVOY", tc.env)
		t.Setenv("PATH", tc.path)
		if path, err := envoy.Find(tc.version); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("ENVOY=%s: Find = %q, %v; want an error with %q", tc.env, path, err, tc.want)
		}
	}
}

func TestStartAndStop(t *testing.T) {
	eachVersion(t, func(t *testing.T, path string) {
		o := envoy.Options{Path: path, Config: bootstrap(t, params(t)), Dir: filepath.Join(t.TempDir(), "new")}
		p := startOnDyingThread(t, o)

		// The signal of a parent's death arrives, and ends Envoy, within 0.1 s.
		select {
		case <-p.Done():
			t.Fatal("Envoy ended with the thread of its starter")
		case <-time.After(300 * time.Millisecond):
		}
		if body, err := p.Get("/ready"); err != nil || strings.TrimSpace(string(body)) != "LIVE" {
			t.Errorf("/ready: %q, %v", body, err)
		}
		stats, err := p.Stats("cluster.replicas.membership_")
		if err != nil || stats["cluster.replicas.membership_total"] != 4 {
			t.Errorf("Stats: %v, %v; want four members", stats, err)
		}
		if _, err := p.Get("/no/such/page"); err == nil {
			t.Error("a 404 of the admin listener is not an error")
		}
		p.Stop()
		p.Stop()
		if _, err := http.Get("http://" + p.Admin + "/ready"); err == nil {
			t.Error("the admin listener answers after Stop")
		}
		// The same directory serves again: nothing of the first run is taken for the second's.
		start(t, o).Stop()
	})
}

// startOnDyingThread starts an Envoy from a goroutine whose thread ends with it.
func startOnDyingThread(t *testing.T, o envoy.Options) (p *envoy.Proc) {
	t.Helper()
	var err error
	onDyingThread(func() { p, err = envoy.Start(t.Context(), o) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func onDyingThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the runtime ends the thread with the goroutine
		if syscall.Gettid() == os.Getpid() {
			onDyingThread(f) // this is the main thread, which never ends; the next goroutine gets another
			return
		}
		f()
	}()
	<-done
}

// TestNoEnvoyOutlivesItsStarter kills a process, this test's own binary, that has started an Envoy.
func TestNoEnvoyOutlivesItsStarter(t *testing.T) {
	if dir := os.Getenv("WEIR_TEST_START_AND_DIE"); dir != "" {
		p := start(t, envoy.Options{Path: find(t, envoy.Newest), Config: bootstrap(t, params(t)), Dir: dir})
		if err := os.WriteFile(filepath.Join(dir, "was-ready"), []byte(p.Admin), 0o644); err != nil {
			t.Fatal(err)
		}
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestNoEnvoyOutlivesItsStarter$")
	cmd.Env = append(os.Environ(), "WEIR_TEST_START_AND_DIE="+dir)
	out, err := cmd.CombinedOutput()
	addr, rerr := os.ReadFile(filepath.Join(dir, "was-ready"))
	if err == nil || rerr != nil {
		t.Fatalf("the starter: %v, %v\n%s", err, rerr, out)
	}
	eventually(t, "Envoy has ended with its starter", func() bool {
		c, err := net.Dial("tcp", string(addr))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

func TestStartReportsWhyEnvoyEnded(t *testing.T) {
	config := bootstrap(t, envoy.Params{}, "codec_type: AUTO                      #", "codec_typo: AUTO #")
	_, err := envoy.Start(t.Context(), envoy.Options{Path: find(t, envoy.Newest), Config: config, Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "codec_typo") {
		t.Errorf("Start = %v, want Envoy's own complaint about codec_typo", err)
	}
	_, err = envoy.Start(t.Context(), envoy.Options{Path: "/no/such/envoy", Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "/no/such/envoy") {
		t.Errorf("Start = %v, want the path in the error", err)
	}
}

// TestFreePortsStayHeld: a port is given to one user only, in this process or another, and is free for TCP.
func TestFreePortsStayHeld(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		ports, err := envoy.FreePorts(4)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range ports {
			if seen[port] {
				t.Fatalf("port %d comes twice", port)
			}
			seen[port] = true
		}
	}
	for port := range seen {
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		if c, err := net.ListenPacket("udp", addr); err == nil { // what another process would ask
			c.Close()
			t.Errorf("port %d is not held", port)
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Errorf("port %d: %v", port, err)
			continue
		}
		l.Close()
	}
}
