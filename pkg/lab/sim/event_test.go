package sim

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParseEvents(t *testing.T) {
	got, err := ParseEvents("die:2@300s,join:2@6m40s,slow:1:0.5@0s,mute:all@1.5s,freeze:0@1s,restart:0@300s")
	want := []Event{
		{Die, 2, 0, 300 * time.Second}, {Join, 2, 0, 400 * time.Second}, {Slow, 1, 0.5, 0}, {Mute, All, 0, 1500 * time.Millisecond},
		{Freeze, 0, 0, time.Second}, {Restart, 0, 0, 300 * time.Second},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v\nwant %v", got, err, want)
	}
	for text, says := range map[string]string{
		"":                   "no time",
		"die:2":              "no time",
		"die:2@":             "no time",
		"die:2@-1s":          "no time",
		"die:2@300":          "no time",
		"end:2@1s":           `"end" is none of`,
		"die@1s":             "1 parts before the @, want 2",
		"die:2:0.5@1s":       "3 parts before the @, want 2",
		"slow:2@1s":          "2 parts before the @, want 3",
		"die:-1@1s":          `"-1" is no number`,
		"die:x@1s":           `"x" is no number`,
		"slow:2:0@1s":        `a speed of "0"`,
		"slow:2:NaN@1s":      `a speed of "NaN"`,
		"slow:2:-1@1s":       `a speed of "-1"`,
		"die:1@1s,die:y@1s":  `event "die:y@1s"`,
		"die:1@1s,":          `event ""`,
		"slow:all:1e999@1ms": `a speed of "1e999"`,
	} {
		if got, err := ParseEvents(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestEventsNeedTargets(t *testing.T) {
	for text, says := range map[string]string{"die:4@1s": "die of number 4, but there are 4", "restart:2@1s": "restart of number 2, but there are 2"} {
		cfg := config("random", 1)
		cfg.Routers = 2
		cfg.Events, _ = ParseEvents(text)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
