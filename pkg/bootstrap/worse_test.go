package bootstrap

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
)

// Edits of the shipped file.
var (
	longHold  = []string{"max_hold: 300s", "max_hold: 600s"} // beyond the 600 s of max_message_timeout by 5 s
	longerYet = []string{"max_hold: 300s", "max_hold: 700s"}
	noBulk    = []string{"{name: bulk, deadline: 300s", "{name: batch, deadline: 300s"}
	raised    = []string{"max_message_timeout: 600s", "max_message_timeout: 800s"}
)

const holdError = "error: max_message_timeout is 10m0s: Envoy ignores weir's override of max_hold + 5s = "

// TestReloadMakesNothingWorse: a policy under which the filters would do harm is refused, with the line and the rule, if
// the policy in force does not have the harm already.
func TestReloadMakesNothingWorse(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, new []string // edits
		changed  string
		fault    []string // by line's own text and text
	}{
		{"a hold too long", nil, longHold, "", []string{"max_message_timeout: 600s", holdError + "10m5s, and ends a hold after message_timeout (hold-timeout)"}},
		{"a hold that fits", nil, []string{"max_hold: 300s", "max_hold: 595s"}, "max_hold", nil},
		{"a class that a route names", nil, noBulk, "", []string{"value: bulk}]}", `error: weir-class "bulk" is no class of the policy, which has interactive, batch: weir takes the first (metadata-value)`}},
		{"its operator knows better", longHold, longerYet, "max_hold", nil},
		{"and better still", longerYet, longHold, "max_hold", nil},
		{"another rule's", longHold, slices.Concat(longHold, noBulk), "", []string{"value: bulk}]}", "(metadata-value)"}},
		{"Envoy's part alone", nil, []string{"response_trailer_mode: SEND", "response_trailer_mode: SKIP"}, "", []string{"response_trailer_mode: SKIP", "(trailer-mode)"}},
		{"of warnings it says nothing", nil, []string{"[envoy.lb, weir]", "[envoy.lb]", "max_hold: 300s", "max_hold: 299s"}, "max_hold", nil},
		{"the filter changes too, which Envoy does not see", nil, slices.Concat(longHold, raised), "", []string{"max_hold: 600s",
			"max_hold: 10m0s + 5s is more than max_message_timeout was when weir started, 10m0s: Envoy reads its bootstrap only when it starts: restart Envoy and weir"}},
		{"the filter changes alone", nil, raised, "", nil},
	} {
		f, _ := texts{edited(t, envoy.Buffered, c.old...), ""}.write(t)
		old, err := Load(f)
		if err != nil {
			t.Fatal(err)
		}
		text := edited(t, envoy.Buffered, c.new...)
		f, short := texts{text, ""}.write(t)
		b, changed, err := Reload(old, f)
		if len(c.fault) == 0 {
			if err != nil || strings.Join(changed, " ") != c.changed || !slices.Equal(b.Timers, old.Timers) {
				t.Errorf("%s: changed %v, %v", c.name, changed, err)
			}
			continue
		}
		at := fmt.Sprintf("envoy.yaml:%d: ", lineOf(t, text, c.fault[0]))
		if err == nil || b != nil || !strings.HasPrefix(short(err.Error()), at) || !strings.Contains(err.Error(), c.fault[1]) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s%s", c.name, err, at, c.fault[1])
		}
	}
}

// TestErrorsOfAFile: Load refuses no file for what a rule has against it, and tells of it.
func TestErrorsOfAFile(t *testing.T) {
	for _, c := range []struct {
		edits []string
		rules string
	}{
		{nil, ""},
		{longHold, "hold-timeout"},
		{slices.Concat(longHold, noBulk), "metadata-value hold-timeout"},
		{[]string{"[envoy.lb, weir]", "[envoy.lb]"}, ""}, // a warning
		{[]string{"            fallback_policy:  ", "            selected_host_key: {key: a, path: [{key: b}]}\n            fallback_policy:  "}, ""}, // an older Envoy refuses it
	} {
		f, _ := texts{edited(t, envoy.Buffered, c.edits...), ""}.write(t)
		b, err := Load(f)
		if err != nil {
			t.Fatal(err)
		}
		var rules []string
		for _, one := range b.Errors {
			rules = append(rules, one.Rule)
		}
		if got := strings.Join(rules, " "); got != c.rules {
			t.Errorf("edits %q: got %v", c.edits, b.Errors)
		}
	}
}

// TestLargeFilesAreRefused reads a file of the most bytes, and not one of a byte more.
func TestLargeFilesAreRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "weir.yaml")
	text := []byte(alone + "#")
	text = append(text, strings.Repeat("x", maxFile-len(text)-1)+"\n"...)
	for _, one := range []struct {
		text []byte
		want string
	}{{text, ""}, {append(text, '\n'), name + ": more than 16 MiB, which no policy or bootstrap file is"}} {
		if err := os.WriteFile(name, one.text, 0o600); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		switch _, err := Load(Files{Policy: name}); {
		case err == nil && one.want != "", err != nil && err.Error() != one.want:
			t.Errorf("%d bytes: %v", len(one.text), err)
		}
		t.Logf("%d bytes in %v", len(one.text), time.Since(began))
	}
}
