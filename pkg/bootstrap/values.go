package bootstrap

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// maxSeconds keeps a duration of the file inside a time.Duration; protobuf's reach ten thousand years.
const maxSeconds = 1e9

// duration reads one as protobuf writes it, seconds with an s. ok is false for nil and for any other text.
func duration(n *yaml.Node) (d time.Duration, ok bool) {
	if n == nil {
		return 0, false
	}
	text, ok := strings.CutSuffix(n.Value, "s")
	seconds, err := strconv.ParseFloat(text, 64)
	if !ok || err != nil || !(seconds >= 0) { // NaN is neither
		return 0, false
	}
	return time.Duration(min(seconds, maxSeconds) * float64(time.Second)), true
}

// timeout is a duration of the file, or Envoy's default where the file has none.
type timeout struct {
	at    *yaml.Node // where it stands, or what lacks it
	value time.Duration
	text  string // "KEY is VALUE" and whose value that is
	known bool   // false: it stands there, and is no duration
}

// timeout reads the duration at a key of n.
func (f *file) timeout(n *yaml.Node, key string, byDefault time.Duration) timeout {
	at := f.get(n, key)
	if at == nil {
		return timeout{n, byDefault, key + " is not given, which is " + byDefault.String(), true}
	}
	d, ok := duration(at)
	return timeout{at, d, key + " is " + d.String(), ok}
}

// number reads a count at the end of the keys. at is where it stands, nil for none or one that is no number.
func (f *file) number(n *yaml.Node, keys ...string) (v float64, at *yaml.Node) {
	at = f.find(n, keys...)
	if at == nil {
		return 0, nil
	}
	v, err := strconv.ParseFloat(at.Value, 64)
	if err != nil || !(v >= 0) {
		return 0, nil
	}
	return v, at
}

// enum reads one of an enum's names, in the order of their numbers: either may stand in the file. The first is
// Envoy's default; what is no name is returned as it stands.
func (f *file) enum(n *yaml.Node, key string, names ...string) string {
	text := strings.ToUpper(f.text(n, key))
	if text == "" {
		return names[0]
	}
	if i, err := strconv.Atoi(text); err == nil && i >= 0 && i < len(names) {
		return names[i]
	}
	return text
}

// flag reports whether true stands at the end of the keys.
func (f *file) flag(n *yaml.Node, keys ...string) bool {
	return strings.EqualFold(f.text(n, keys...), "true")
}

// has reports whether a list has a text.
func (f *file) has(n *yaml.Node, text string) bool {
	for _, one := range f.list(n) {
		if one.Value == text {
			return true
		}
	}
	return false
}
