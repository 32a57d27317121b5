package envoy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net"
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

// TestRecordings holds the recordings, which the fake Envoy of pkg/extproc plays, to what the real one sends: the
// messages, their order and the fields that are set. With -update it writes them.
func TestRecordings(t *testing.T) {
	eachVersion(t, func(t *testing.T, path string) {
		version, err := envoy.Version(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range allModes {
			r := startRig(t, path, rigOptions{mode: mode, edits: append(bufferOf(8<<10), upgradable...)})
			t.Run(string(mode), func(t *testing.T) {
				t.Parallel()
				rec := r.record(t)
				for name, run := range exchanges {
					t.Run(name, func(t *testing.T) {
						run(t, r)
						compareRecording(t, recordingFile(version, mode, name), rec.ended(t), r.addrs)
					})
				}
				if mode == envoy.Partial {
					t.Run("large", func(t *testing.T) {
						for tries := 1; !large(t, r) && tries < 10; tries++ {
							rec.ended(t)
						}
						compareRecording(t, recordingFile(version, mode, "large"), rec.ended(t), r.addrs)
					})
				}
			})
		}
	})
}

func recordingFile(version string, mode envoy.Mode, name string) string {
	return filepath.Join("..", "pkg", "extproc", "testdata", "recorded", version, string(mode)+"-"+name+".json")
}

// ended returns the messages of the stream that ends now.
func (r *recorder) ended(t *testing.T) []proto.Message {
	t.Helper()
	select {
	case got := <-r.streams:
		return got
	case <-time.After(patience):
		t.Fatal("the stream did not end")
		return nil
	}
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
