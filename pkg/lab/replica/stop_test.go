package replica

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// TestStop: answers that end within the grace do, a hung or a long one is cut, and Serve returns nil.
func TestStop(t *testing.T) {
	profile, err := step.Lookup("8B")
	if err != nil {
		t.Fatal(err)
	}
	for _, hang := range []bool{false, true} {
		s, err := New(Config{Model: "m", Profile: profile, Speed: 1, Fault: Fault{Hang: hang}})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, l) }()
		cut := make(chan error, 1)
		go func() {
			resp, err := http.Post("http://"+l.Addr().String()+"/v1/completions", "", strings.NewReader(`{"prompt":"x","max_tokens":100000,"stream":true}`))
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			cut <- err
		}()
		if hang {
			time.Sleep(50 * time.Millisecond) // a hung request leaves no trace to wait for
		} else {
			until(t, "tokens", func() bool { return stats(s).Generated > 0 })
		}
		stop()
		select {
		case err := <-served:
			if err != nil {
				t.Errorf("hang %v: serve: %v", hang, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("hang %v: serve did not return", hang)
		}
		if err := <-cut; err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("hang %v: the client saw %v", hang, err)
		}
	}
}
