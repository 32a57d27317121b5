package scrape

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// A replica that comes and goes is logged once a minute.
func TestFlappingReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n int
		a := func(*http.Request) (*http.Response, error) {
			if n++; n%5 != 0 {
				return nil, io.ErrUnexpectedEOF
			}
			return ok(page)
		}
		var log lines
		_, stop := start(t, 1, log.logger(), a, func(time.Time, pool.Sample) {})
		time.Sleep(9*Quiet + Quiet/2)
		stop()
		if l := log.all(); len(l) < 16 || len(l) > 20 || !strings.Contains(l[0], "cannot be read") || !strings.Contains(l[1], "again") {
			t.Errorf("%d lines in nine and a half minutes: %q", len(l), l)
		}
	})
}

// One that goes again within the minute, and stays away, is logged when it is over.
func TestGoneWhileQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n int
		a := func(*http.Request) (*http.Response, error) {
			if n++; n != 5 {
				return nil, io.ErrUnexpectedEOF
			}
			return ok(page)
		}
		var log lines
		_, stop := start(t, 1, log.logger(), a, func(time.Time, pool.Sample) {})
		time.Sleep(Quiet)
		synctest.Wait()
		if l := log.all(); len(l) != 2 {
			t.Errorf("within the minute: %q", l)
		}
		time.Sleep(10 * Quiet)
		stop()
		if l := log.all(); len(l) != 3 || !strings.Contains(l[2], "cannot be read") {
			t.Errorf("after it: %q", l)
		}
	})
}

// gateway-api-inference-extension#365: each failure of each replica was logged, twenty in a second. Ten minutes of 64 replicas
// that answer with garbage are 64 lines of bounded length, and every try goes to the replica's own port.
func TestAllFailForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := func(r *http.Request) (*http.Response, error) {
			if r.URL.Scheme != "http" || r.URL.Port() != "8000" || r.URL.Path != "/metrics" {
				t.Errorf("asked %s", r.URL)
			}
			return nil, errors.New(strings.Repeat("garbage", 10_000))
		}
		var log lines
		s, stop := start(t, 64, log.logger(), a, func(time.Time, pool.Sample) { t.Error("observed") })
		time.Sleep(10 * time.Minute)
		stop()
		l := log.all()
		for _, one := range l {
			if len(one) > 600 {
				t.Fatalf("a line of %d bytes", len(one))
			}
		}
		var failures uint64
		for _, st := range s.Stats() {
			failures += st.Failures
		}
		if len(l) != 64 || failures < 64*140 || failures > 64*160 { // each 4 s
			t.Errorf("%d lines, %d failures counted", len(l), failures)
		}
	})
}
