package workload

import (
	"strings"
	"testing"
	"time"
)

// TestNames: W5 is W5-35 by another name, and W4 says where it is.
func TestNames(t *testing.T) {
	i, err := Lookup("W5")
	if err != nil || i.Name != "W5" {
		t.Fatalf("%+v, %v", i, err)
	}
	p := Params{Rate: 10, Seed: 1, Length: 10 * time.Second}
	if digest(all(t, "W5", p)) != digest(all(t, "W5-35", p)) {
		t.Error("W5 is not W5-35")
	}
	if !strings.Contains(Listing(), "W5-35 (or W5), W5-47") {
		t.Errorf("the listing does not tell of W5: %s", Listing())
	}
	if _, err := Lookup("W4"); err == nil || !strings.Contains(err.Error(), "-trace") {
		t.Errorf("W4: %v", err)
	}
	if _, err := Lookup(""); err == nil {
		t.Error("no name is a workload")
	}
}

// TestLeftover: all of it when nobody is interactive, none where they take everything, and in between in proportion.
func TestLeftover(t *testing.T) {
	near(t, "interactive capacity", interactiveCapacity(8), 89, 0.01)
	near(t, "alone", Leftover(0, 8), bulkCapacity(8), 1e-9)
	near(t, "half", Leftover(interactiveCapacity(8)/2, 8), bulkCapacity(8)/2, 1e-9)
	if x := Leftover(100, 8); x != 0 {
		t.Errorf("%v bulk requests/s are left of nothing", x)
	}
}
