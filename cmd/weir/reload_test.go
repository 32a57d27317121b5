package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const classes = "      - {name: bulk, deadline: 300s, bulk: true, share_percent: 5}"

// added has a class more, batch, and one less, bulk.
const added = "      - {name: batch, deadline: 60s, bulk: true}"

// The route's class, which must be one of the policy.
const (
	routeBulk  = "{key: weir-class, value: bulk}"
	routeBatch = "{key: weir-class, value: batch}"
)

// TestReloadOnSignal has a class added and one removed, and back: each is usable and has its series, and the name that
// is gone is refused.
func TestReloadOnSignal(t *testing.T) {
	s := newSite(t)
	p, log := s.process(t)
	began := s.value(t, "weir_policy_loaded_timestamp_seconds")
	if d := time.Since(time.Unix(int64(began), 0)); d < 0 || d > time.Hour {
		t.Errorf("the policy is %v old", d)
	}
	if got := s.decide(t, "bulk") + " " + s.decide(t, "batch"); got != "bulk interactive" {
		t.Errorf("classes %s", got)
	}
	until(t, "bulk counted", func() bool { return s.value(t, requests("bulk")) == 1 })
	write(t, s.file, s.edited(t, classes, added, routeBulk, routeBatch, "max_hold: 300s", "max_hold: 299s"))
	if err := p.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.reloaded(t, "ok", 1)
	if page, _ := s.get("/metrics"); !strings.Contains(page, requests("batch")+" 0") || !strings.Contains(page, requests("bulk")+" 1") {
		t.Error("the page lacks a series of the class that came or of the one that went")
	}
	if got := s.decide(t, "batch") + " " + s.decide(t, "bulk"); got != "batch interactive" {
		t.Errorf("classes %s", got)
	}
	until(t, "batch counted", func() bool { return s.value(t, requests("batch")) == 1 })
	if !strings.Contains(log.String(), `level=INFO msg="policy reloaded" changed="classes, max_hold"`) {
		t.Errorf("the log does not say what changed:\n%s", log)
	}
	if now := s.value(t, "weir_policy_loaded_timestamp_seconds"); now <= began {
		t.Errorf("the policy was loaded at %v, then at %v", began, now)
	}
	write(t, s.file, s.edited(t, added, classes, routeBatch, routeBulk))
	if err := p.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.reloaded(t, "ok", 2)
	if got := s.decide(t, "bulk"); got != "bulk" {
		t.Errorf("class %s", got)
	}
	until(t, "bulk goes on counting", func() bool { return s.value(t, requests("bulk")) == 2 })
}

// TestReloadOfAChangedFile has the file changed in each way, and a change that changes nothing.
func TestReloadOfAChangedFile(t *testing.T) {
	s := newSite(t)
	_, log := s.process(t)
	write(t, s.file, s.edited(t, "max_hold: 300s", "max_hold: 1m"))
	s.reloaded(t, "ok", 1)
	rename(t, s.file, s.edited(t, "max_hold: 1m", "max_hold: 2m"))
	s.reloaded(t, "ok", 2)
	rename(t, s.file, s.edited(t, "max_hold: 2m", "max_hold: 3m"))
	s.reloaded(t, "ok", 3)
	text := s.edited(t, "max_hold: 3m", "max_hold: 4m")
	if err := os.Remove(s.file); err != nil {
		t.Fatal(err)
	}
	s.reloaded(t, "refused", 1)
	write(t, s.file, text)
	s.reloaded(t, "ok", 4)
	rename(t, s.file, append(text, "# a comment\n"...))
	s.reloaded(t, "unchanged", 1)
	if got := log.String(); strings.Count(got, "policy reloaded") != 4 || !strings.Contains(got, "reload refused") || strings.Count(got, "level=DEBUG msg=\"reload: nothing") == 0 {
		t.Errorf("log:\n%s", got)
	}
}

// TestReloadOfALink is a ConfigMap: the file is a link to one in ..data, itself a link that is moved; and, for the
// second way, a link to the directory on the way to the file.
func TestReloadOfALink(t *testing.T) {
	for _, c := range []struct {
		name, file, moved string // in the site's directory
	}{
		{"Kubernetes", "mount/envoy.yaml", "mount/..data"},
		{"the directory", "current/envoy.yaml", "current"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			versions := []string{"max_hold: 300s", "max_hold: 1m", "max_hold: 2m"}
			at := filepath.Dir(filepath.Join(s.dir, c.moved))
			for i, v := range versions {
				dir := filepath.Join(at, fmt.Sprint("..v", i))
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, "envoy.yaml"), s.edited(t, "max_hold: 300s", v))
			}
			link(t, "..v0", filepath.Join(s.dir, c.moved))
			file := filepath.Join(s.dir, c.file)
			if c.name == "Kubernetes" {
				link(t, "..data/envoy.yaml", file)
			}
			s.process(t, "--bootstrap", file)
			link(t, "..v1", filepath.Join(s.dir, c.moved))
			s.reloaded(t, "ok", 1)
			if err := os.RemoveAll(filepath.Join(at, "..v0")); err != nil {
				t.Fatal(err)
			}
			link(t, "..v2", filepath.Join(s.dir, c.moved))
			s.reloaded(t, "ok", 2)
			write(t, filepath.Join(at, "..v2", "envoy.yaml"), s.edited(t, "max_hold: 300s", "max_hold: 3m"))
			s.reloaded(t, "ok", 3)
		})
	}
}

// TestReloadRefused keeps the old policy: of a file with faults, each named with its line, and of one with changes that
// need a restart beside one that would not.
func TestReloadRefused(t *testing.T) {
	s := newSite(t)
	_, log := s.process(t)
	good := s.edited(t)
	at := func(text []byte, part string) string {
		return fmt.Sprint(s.file, ":", 1+bytes.Count(text[:bytes.Index(text, []byte(part))], []byte("\n")), ": ")
	}
	bad := s.edited(t, classes, added, "max_hold: 300s", "max_hold: 300", "replica: {profile: 8B}", "knne: "+strings.Repeat("x", 2000))
	rename(t, s.file, bad)
	s.reloaded(t, "refused", 1)
	for _, want := range []string{at(bad, "max_hold: 300 ") + `max_hold: \"300\" is not a duration`, at(bad, "knne") + `unknown key \"knne\"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	if got := s.decide(t, "batch") + " " + s.decide(t, "bulk"); got != "interactive bulk" {
		t.Errorf("classes %s", got)
	}
	rename(t, s.file, good)
	_, port, _ := net.SplitHostPort(s.replica)
	other := net.JoinHostPort("127.0.0.2", port)
	static := s.edited(t, classes, added, "admin: "+s.admin, "admin: "+other)
	static = bytes.ReplaceAll(static, []byte("address: 127.0.0.1, port_value: "+port), []byte("address: 127.0.0.2, port_value: "+port))
	rename(t, s.file, static)
	s.reloaded(t, "refused", 2)
	for _, want := range []string{
		`the endpoints of pool \"replicas\" changed: Envoy reads its bootstrap only when it starts: restart Envoy and weir`,
		at(static, "admin: "+other) + "admin: it changed, and the listener opens at weir's start: restart weir",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	if got := s.decide(t, "batch"); got != "interactive" {
		t.Errorf("class %s: the reload was not refused whole", got)
	}
	rename(t, s.file, bytes.Replace(good, []byte(classes), []byte(added), 1))
	s.reloaded(t, "refused", 3)
	if want := at(good, routeBulk) + `error: weir-class \"bulk\" is no class of the policy`; !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %s:\n%s", want, log)
	}
	rename(t, s.file, bytes.Replace(bytes.Replace(good, []byte(classes), []byte(added), 1), []byte(routeBulk), []byte(routeBatch), 1))
	s.reloaded(t, "ok", 1)
	if got := s.decide(t, "batch"); got != "batch" {
		t.Errorf("class %s", got)
	}
	for line := range strings.Lines(log.String()) {
		if len(line) > maxFault+300 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
}

// TestPolicyFile runs weir with the policy beside a bootstrap file, and with a weir.yaml alone: the file is what is
// reloaded.
func TestPolicyFile(t *testing.T) {
	t.Run("beside", func(t *testing.T) {
		s := newSite(t)
		policy := filepath.Join(s.dir, "weir.yaml")
		write(t, policy, []byte("admin: "+s.admin+"\n"))
		write(t, s.file, s.edited(t, "\n    weir:\n", "\n    other:\n"))
		s.process(t, "--bootstrap", s.file, "-c", policy)
		rename(t, policy, []byte("admin: "+s.admin+"\nclasses: [{name: only, deadline: 1s}, {name: bulk, deadline: 1s}]\n"))
		s.reloaded(t, "ok", 1)
		if got := s.decide(t, ""); got != "only" {
			t.Errorf("class %s", got)
		}
	})
	t.Run("alone", func(t *testing.T) {
		s := newSite(t)
		policy := filepath.Join(s.dir, "weir.yaml")
		text := "listen: unix:" + s.socket + "\nadmin: " + s.admin + "\npools: [{name: replicas, endpoints: ['" + s.replica + "']}]\n"
		write(t, policy, []byte(text))
		_, log := s.process(t, "-c", policy)
		if got := s.decide(t, ""); got != "interactive" {
			t.Errorf("class %s", got)
		}
		rename(t, policy, []byte(text+"class_from: metadata:jwt:class\n"))
		s.reloaded(t, "ok", 1)
		if got := s.decide(t, ""); got != "bulk" {
			t.Errorf("class %s", got)
		}
		rename(t, policy, []byte(strings.Replace(text, "name: replicas", "name: models", 1)))
		s.reloaded(t, "refused", 1)
		if want := `weir.yaml:3: pool \"models\" is new: it is read when weir starts: restart weir`; !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	})
}

// TestReloadsLeaveNothing is production-stack#680: after a hundred reloads there are as many goroutines, and as many
// scrapes a second, as before.
func TestReloadsLeaveNothing(t *testing.T) {
	s := newSite(t)
	var scrapes atomic.Int64
	l, err := net.Listen("tcp", s.replica)
	if err != nil {
		t.Fatal(err)
	}
	replica := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		scrapes.Add(1)
		_, _ = io.WriteString(w, "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0\n")
	})}
	served := make(chan error, 1)
	go func() { served <- replica.Serve(l) }()
	defer func() {
		replica.Close()
		<-served
	}()
	stop := s.start(t)
	// rate is the time that three scrapes take, after the one under way.
	rate := func() time.Duration {
		from := scrapes.Load()
		until(t, "a scrape", func() bool { return scrapes.Load() > from })
		from, began := scrapes.Load(), time.Now()
		until(t, "three scrapes", func() bool { return scrapes.Load() >= from+3 })
		return time.Since(began)
	}
	before := rate()
	http.DefaultClient.CloseIdleConnections()
	goroutines := runtime.NumGoroutine()
	for i := range 100 {
		write(t, s.file, s.edited(t, []string{"max_hold: 300s", "max_hold: 299s"}[i%2], []string{"max_hold: 299s", "max_hold: 300s"}[i%2]))
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.reloaded(t, "ok", float64(i+1))
	}
	http.DefaultClient.CloseIdleConnections()
	until(t, fmt.Sprintf("%d goroutines again, or a few more", goroutines), func() bool { return runtime.NumGoroutine() <= goroutines+3 })
	if after := rate(); after < before/2 {
		t.Errorf("three scrapes took %v before and take %v after the reloads", before, after)
	}
	if code, log := stop(); code != 0 || strings.Count(log, "policy reloaded") != 100 {
		t.Errorf("status %d:\n%s", code, log)
	}
}
