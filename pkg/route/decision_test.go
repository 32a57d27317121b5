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
	bad := Default()
	bad.Classes, bad.MaxHold = nil, 2*time.Hour
	want := "classes: at least one is needed\nmax_hold: 2h0m0s is not between 0 and 1h"
	if err := bad.Validate(); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestHomeIsPreferredInTheFirstMinute(t *testing.T) {
	r := newRouter(4, Default())
	r.start.Store(0)
	if !r.young(at(0)) || !r.young(at(59.9)) || r.young(at(60)) || r.young(at(1e6)) {
		t.Errorf("young at 0, 59.9, 60 s: %v, %v, %v", r.young(at(0)), r.young(at(59.9)), r.young(at(60)))
	}
}
