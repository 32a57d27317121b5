package bootstrap

import "fmt"

// Version is an Envoy's, to the minor number: patches change no configuration.
type Version struct {
	Major, Minor int
}

// Oldest and Newest are the ends of the range of Envoys that weir is tested with.
var (
	Oldest = Version{1, 36}
	Newest = Version{1, 40}
)

// Before reports whether v is older than w.
func (v Version) Before(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// String is the version as UnmarshalText reads it.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// MarshalText is String, for a flag.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads 1.36 or 1.36.4. An Envoy older than Oldest is an error.
func (v *Version) UnmarshalText(text []byte) error {
	var got Version
	var patch int
	full := string(text) + ".0"
	if n, _ := fmt.Sscanf(full, "%d.%d.%d", &got.Major, &got.Minor, &patch); n != 3 || got.Major < 0 || got.Minor < 0 {
		return fmt.Errorf("%q is no version such as %s", text, Oldest)
	}
	if got.Before(Oldest) {
		return fmt.Errorf("weir needs Envoy %s or newer", Oldest)
	}
	*v = got
	return nil
}
