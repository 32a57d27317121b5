package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
)

// pipe is a log that a test reads while weir writes it.
type pipe struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *pipe) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *pipe) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// process runs weir serve as a process of its own, with args instead of the site's bootstrap file if there are any. It
// is killed at the test's end: TestSignalsStopTheProcess has one end in order.
func (s site) process(t *testing.T, args ...string) (*os.Process, *pipe) {
	t.Helper()
	if args == nil {
		args = []string{"--bootstrap", s.file}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"serve", "-log-level", "debug"}, args...)...)
	cmd.Env = append(os.Environ(), "WEIR_TEST_MAIN=1")
	log := &pipe{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // the test's context has ended
		if got := log.String(); strings.Contains(got, "DATA RACE") || strings.Contains(got, "panic:") {
			t.Errorf("log:\n%s", got)
		}
	})
	s.await(t)
	return cmd.Process, log
}

// until polls until ok, for limit at most.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in time: ", what)
		}
	}
}

// value returns one series of the metrics page, 0 for none.
func (s site) value(t *testing.T, series string) float64 {
	t.Helper()
	page, err := s.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(page, "\n"+series+" ")
	text, _, _ := strings.Cut(rest, "\n")
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

func reloads(result string) string { return `weir_reloads_total{result="` + result + `"}` }

// reloaded returns when so many reloads of a result have been counted.
func (s site) reloaded(t *testing.T, result string, n float64) {
	t.Helper()
	until(t, fmt.Sprint(n, " ", result), func() bool { return s.value(t, reloads(result)) >= n })
}

// edited returns the site's bootstrap file after edits, old and new text by turns.
func (s site) edited(t *testing.T, edits ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	for ; len(edits) > 0; edits = edits[2:] {
		if bytes.Count(text, []byte(edits[0])) != 1 {
			t.Fatalf("%q does not stand once in the file", edits[0])
		}
		text = bytes.Replace(text, []byte(edits[0]), []byte(edits[1]), 1)
	}
	return text
}

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// rename puts a text in a file's place, as an editor does.
func rename(t *testing.T, name string, text []byte) {
	t.Helper()
	write(t, name+".new", text)
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// link points a symbolic link at another target at once, as Kubernetes does.
func link(t *testing.T, target, name string) {
	t.Helper()
	if err := errors.Join(os.Symlink(target, name+"_tmp"), os.Rename(name+"_tmp", name)); err != nil {
		t.Fatal(err)
	}
}

// stream opens an ext_proc stream; leave closes it with its connection.
func (s site) stream(t *testing.T) (rpc extprocv3.ExternalProcessor_ProcessClient, leave func()) {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+s.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	if rpc, err = extprocv3.NewExternalProcessorClient(conn).Process(t.Context()); err != nil {
		t.Fatal(err)
	}
	return rpc, func() { conn.Close() }
}

// decide sends one request through weir and returns the class of its decision record. Its trusted metadata says bulk.
func (s site) decide(t *testing.T, class string) string {
	t.Helper()
	rpc, leave := s.stream(t)
	defer leave()
	var headers []*corev3.HeaderValue
	for _, h := range [][2]string{{":path", "/v1/chat/completions"}, {"x-weir-class", class}} {
		headers = append(headers, &corev3.HeaderValue{Key: h[0], RawValue: []byte(h[1])})
	}
	err := rpc.Send(&extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{
			Headers: &corev3.HeaderMap{Headers: headers}, EndOfStream: true,
		}},
		MetadataContext: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
			"jwt": {Fields: map[string]*structpb.Value{"class": structpb.NewStringValue("bulk")}},
		}},
		ProtocolConfig: &extprocv3.ProtocolConfiguration{RequestBodyMode: filterv3.ProcessingMode_BUFFERED},
		Attributes:     map[string]*structpb.Struct{"f": {Fields: map[string]*structpb.Value{"xds.cluster_name": structpb.NewStringValue("replicas")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := rpc.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return r.GetDynamicMetadata().GetFields()["weir"].GetStructValue().GetFields()["class"].GetStringValue()
}

// requests is the series of a class's requests that ended unanswered, as decide's do.
func requests(class string) string {
	return `weir_requests_total{class="` + class + `",outcome="unanswered",pool="replicas"}`
}
