package envoy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/envoy"
)

var update = flag.Bool("update", false, "write what Envoy sends to pkg/extproc/testdata/recorded")

// recordedMessage is one message of a recorded stream.
type recordedMessage struct {
	From    string          `json:"from"` // "envoy" or "weir"
	Message json.RawMessage `json:"message"`
}

// recorder is weir with its streams written down.
type recorder struct {
	extprocv3.ExternalProcessorServer
	streams chan []proto.Message // each stream that ended
}

func (r *recorder) Process(rpc extprocv3.ExternalProcessor_ProcessServer) error {
	s := &recordedStream{ExternalProcessor_ProcessServer: rpc}
	err := r.ExternalProcessorServer.Process(s)
	r.streams <- s.messages
	return err
}

type recordedStream struct {
	extprocv3.ExternalProcessor_ProcessServer
	mu       sync.Mutex
	messages []proto.Message
}

func (s *recordedStream) add(m proto.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, proto.Clone(m))
}

func (s *recordedStream) Recv() (*extprocv3.ProcessingRequest, error) {
	m, err := s.ExternalProcessor_ProcessServer.Recv()
	if err == nil {
		s.add(m)
	}
	return m, err
}

func (s *recordedStream) Send(m *extprocv3.ProcessingResponse) error {
	s.add(m)
	return s.ExternalProcessor_ProcessServer.Send(m)
}

// record has weir serve with its streams written down.
func (r *rig) record(t *testing.T) *recorder {
	t.Helper()
	r.edge = newEdge(t, nil, r.addrs, 0)
	rec := &recorder{ExternalProcessorServer: r.edge.Server, streams: make(chan []proto.Message, 1)}
	g := grpc.NewServer()
	extprocv3.RegisterExternalProcessorServer(g, rec)
	healthv1.RegisterHealthServer(g, health.NewServer())
	l, err := net.Listen("unix", r.socket())
	if err != nil {
		t.Fatal(err)
	}
	go g.Serve(l)
	t.Cleanup(g.Stop)
	eventually(t, "Envoy sends requests to weir", func() bool {
		r.get(t, "/v1/models")
		select {
		case <-rec.streams:
			return true
		case <-time.After(time.Second):
			return false
		}
	})
	return rec
}

// exchanges are the HTTP requests that are recorded. Each runs alone.
var exchanges = map[string]func(t *testing.T, r *rig){
	"get": func(t *testing.T, r *rig) { r.get(t, "/v1/models") },
	"post": func(t *testing.T, r *rig) {
		exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+"/v1/chat/completions", chat))
	},
	"chunks": func(t *testing.T, r *rig) {
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", "")
		req.Body, req.ContentLength = io.NopCloser(&slowReader{text: chat, piece: 20, every: 10 * time.Millisecond}), -1
		exchange(t, http.DefaultClient, req)
	},
	"empty": func(t *testing.T, r *rig) {
		exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+"/v1/chat/completions", ""))
	},
	"empty-chunked": func(t *testing.T, r *rig) {
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", "")
		req.Body, req.ContentLength = io.NopCloser(&slowReader{every: 10 * time.Millisecond}), -1
		exchange(t, http.DefaultClient, req)
	},
	"h2-trailers": func(t *testing.T, r *rig) {
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", "")
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(chat)), -1
		req.Trailer = http.Header{"X-Checksum": {"abc"}}
		exchange(t, http2Client, req)
	},
	"events": func(t *testing.T, r *rig) {
		exchange(t, http.DefaultClient, newRequest(t, "POST", r.front+"/v1/chat/completions?events=3&every=20ms", chat))
	},
	"abort-answer": func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := http.DefaultClient.Do(newRequest(t, "POST", r.front+"/v1/chat/completions?events=1000&every=20ms", chat).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		cancel()
	},
	"abort-upload": func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		req := newRequest(t, "POST", r.front+"/v1/chat/completions", "").WithContext(ctx)
		req.Body, req.ContentLength = io.NopCloser(&slowReader{text: chat, piece: 20, every: 200 * time.Millisecond}), -1
		if _, err := http.DefaultClient.Do(req); err == nil {
			t.Error("an upload of a second ends within 0.3 s")
		}
	},
}

const chat = `{"model": "m", "messages": [{"role": "user", "content": "What is a weir?"}], "seed": 9007199254740993}`

// slowReader gives its text in pieces, each after a pause, and its end after another.
type slowReader struct {
	text  string
	piece int
	every time.Duration
}

func (s *slowReader) Read(b []byte) (int, error) {
	time.Sleep(s.every)
	if s.text == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), s.piece)], s.text)
	s.text = s.text[n:]
	return n, nil
}

// TestRecordings holds the recordings, which the fake Envoy of pkg/extproc plays, to what the real one sends: the
// messages, their order and the fields that are set. With -update it writes them.
func TestRecordings(t *testing.T) {
	eachVersion(t, func(t *testing.T, path string) {
		version, err := envoy.Version(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []envoy.Mode{envoy.Buffered, envoy.Streamed} {
			r := startRig(t, path, rigOptions{mode: mode})
			rec := r.record(t)
			for name, run := range exchanges {
				t.Run(string(mode)+"-"+name, func(t *testing.T) {
					run(t, r)
					file := filepath.Join("..", "pkg", "extproc", "testdata", "recorded", version, string(mode)+"-"+name+".json")
					select {
					case got := <-rec.streams:
						compareRecording(t, file, got, r.addrs)
					case <-time.After(patience):
						t.Fatal("the stream did not end")
					}
				})
			}
		}
	})
}

func compareRecording(t *testing.T, file string, got []proto.Message, addrs []string) {
	t.Helper()
	if *update {
		writeRecording(t, file, got, addrs)
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var steps []recordedMessage
	if err := json.Unmarshal(text, &steps); err != nil {
		t.Fatal(err)
	}
	var want []proto.Message
	for _, s := range steps {
		var m proto.Message = &extprocv3.ProcessingResponse{}
		if s.From == "envoy" {
			m = &extprocv3.ProcessingRequest{}
		}
		if err := protojson.Unmarshal(s.Message, m); err != nil {
			t.Fatal(err)
		}
		want = append(want, m)
	}
	if g, w := strings.Join(shapes(got), "\n"), strings.Join(shapes(want), "\n"); g != w {
		t.Errorf("Envoy sends\n%s\nand %s has\n%s", g, file, w)
	}
}

func writeRecording(t *testing.T, file string, messages []proto.Message, addrs []string) {
	t.Helper()
	var steps []recordedMessage
	for _, m := range messages {
		scrub(m, addrs)
		text, err := protojson.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		s := recordedMessage{From: "weir"}
		if _, ok := m.(*extprocv3.ProcessingRequest); ok {
			s.From = "envoy"
		}
		var compact bytes.Buffer // protojson's spaces are random
		if err := json.Compact(&compact, text); err != nil {
			t.Fatal(err)
		}
		s.Message = compact.Bytes()
		steps = append(steps, s)
	}
	text, err := json.MarshalIndent(steps, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
