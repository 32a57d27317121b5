package extproc

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestEarlyWarning holds that a configuration which ends every stream early is named once, and that single clients
// which leave early are no reason to.
func TestEarlyWarning(t *testing.T) {
	for name, tc := range map[string]struct {
		early, late, want int
	}{
		"all end early":  {early: 3 * earlyMany, want: 1},
		"too few to say": {early: earlyMany - 1},
		"a third":        {early: 2 * earlyMany, late: 4 * earlyMany},
		"none":           {late: 30},
	} {
		var out bytes.Buffer
		s := NewServer(Default(), nil, nil, nil, slog.New(slog.NewTextHandler(&out, nil)))
		for range tc.late {
			s.eventStream(earlyEnd)
		}
		for range tc.early {
			s.eventStream(earlyEnd - time.Nanosecond)
		}
		if got := strings.Count(out.String(), "response_trailer_mode: SEND"); got != tc.want {
			t.Errorf("%s: warned %d times, want %d", name, got, tc.want)
		}
		if got := s.Stats().Early; got != int64(tc.early) {
			t.Errorf("%s: %d early, want %d", name, got, tc.early)
		}
	}
}
