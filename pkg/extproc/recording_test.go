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

// step is a message of a recorded stream: Envoy's, or weir's of that day.
type step struct {
	sent  *extprocv3.ProcessingRequest
	reply *extprocv3.ProcessingResponse
}

// recording returns the messages that the real Envoy sent in one stream (envoy/recording_e2e_test.go writes them).
func recording(t testing.TB, version, name string) (messages []*extprocv3.ProcessingRequest) {
	t.Helper()
	for _, s := range steps(t, version, name) {
		if s.sent != nil {
			messages = append(messages, s.sent)
		}
	}
	return messages
}

// steps returns a recording with weir's replies.
func steps(t testing.TB, version, name string) (all []step) {
	t.Helper()
	file := filepath.Join("testdata", "recorded", version, name+".json")
	read, _ := files.LoadOrStore(file, sync.OnceValues(func() ([]step, error) { return readRecording(file) }))
	shared, err := read.(func() ([]step, error))()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shared {
		all = append(all, step{proto.CloneOf(s.sent), proto.CloneOf(s.reply)})
	}
	return all
}

var files sync.Map // of what recording has read

func readRecording(file string) (all []step, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var lines []struct {
		From    string
		Message json.RawMessage
	}
	if err := json.Unmarshal(text, &lines); err != nil {
		return nil, err
	}
	for _, l := range lines {
		var s step
		var m proto.Message
		if l.From == "envoy" {
			s.sent = &extprocv3.ProcessingRequest{}
			m = s.sent
		} else {
			s.reply = &extprocv3.ProcessingResponse{}
			m = s.reply
		}
		if err := protojson.Unmarshal(l.Message, m); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
