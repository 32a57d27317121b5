package extproc_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// recorded lists the versions of Envoy whose messages are recorded.
var recorded = []string{"1.36.4", "1.40.0"}

const newest = "1.40.0"

// recording returns the messages that the real Envoy sent in one stream (envoy/recording_e2e_test.go writes them).
func recording(t *testing.T, version, name string) (messages []*extprocv3.ProcessingRequest) {
	t.Helper()
	file := filepath.Join("testdata", "recorded", version, name+".json")
	read, _ := files.LoadOrStore(file, sync.OnceValues(func() ([]*extprocv3.ProcessingRequest, error) { return readRecording(file) }))
	all, err := read.(func() ([]*extprocv3.ProcessingRequest, error))()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		messages = append(messages, proto.CloneOf(m))
	}
	return messages
}

var files sync.Map // of what recording has read

func readRecording(file string) (messages []*extprocv3.ProcessingRequest, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var steps []struct {
		From    string
		Message json.RawMessage
	}
	if err := json.Unmarshal(text, &steps); err != nil {
		return nil, err
	}
	for _, s := range steps {
		if s.From != "envoy" {
			continue
		}
		m := &extprocv3.ProcessingRequest{}
		if err := protojson.Unmarshal(s.Message, m); err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}
