package replica

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// start serves a replica of the 8B profile, fast unless the test says otherwise, and stops it with the test.
func start(t testing.TB, change func(*Config)) (url string, s *Server) {
	t.Helper()
	profile, err := step.Lookup("8B")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Name: "r1", Model: "tiny", Profile: profile, Speed: 20}
	if change != nil {
		change(&cfg)
	}
	if s, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return "http://" + l.Addr().String(), s
}

func post(t testing.TB, url, body string) *http.Response {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// ask posts and returns the status and the whole answer.
func ask(t testing.TB, url, body string) (int, string) {
	t.Helper()
	resp := post(t, url, body)
	return resp.StatusCode, read(t, resp.Body)
}

func get(t testing.TB, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, read(t, resp.Body)
}

func read(t testing.TB, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func decode[T any](t testing.TB, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
	return v
}

// events splits a stream by its framing: "data: " lines with an empty line after each, and nothing else.
func events(t testing.TB, stream string) []string {
	t.Helper()
	var out []string
	sc := bufio.NewScanner(strings.NewReader(stream))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok || !sc.Scan() || sc.Text() != "" {
			t.Fatalf("event %d is not one data line and an empty one: %q", len(out), sc.Text())
		}
		out = append(out, data)
	}
	return out
}

// shape is a JSON value with its leaves replaced by their kinds.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = shape(v[k])
		}
		return v
	case []any:
		for i := range v {
			v[i] = shape(v[i])
		}
		return v
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "bool"
	default:
		return nil
	}
}

func recorded(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// until waits for a condition that another goroutine brings about.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func stats(s *Server) (st step.Stats) {
	s.engine.do(func() { st = s.engine.model.Stats() })
	return st
}
