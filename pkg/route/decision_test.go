package route

import (
	"testing"
	"time"
)

func TestNamesAreClosedSets(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range Outcomes() {
		if o == None || o.String() == "" || seen[o.String()] {
			t.Errorf("outcome %d is named %q", o, o)
		}
		seen[o.String()] = true
	}
	if len(seen) != int(outcomes)-1 {
		t.Errorf("%d outcomes, want %d", len(seen), outcomes-1)
	}
	for s := range servedEnd {
		if s.String() == "" {
			t.Errorf("served %d has no name", s)
		}
	}
}

func TestValidate(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	bad := Config{MaxHold: 2 * time.Hour, MaxHeld: -1}
	want := "classes: at least one is needed\nmax_hold: 2h0m0s is not between 0 and 1h\nmax_held: -1 is not between 1 and 1000000"
	if err := bad.Validate(); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
