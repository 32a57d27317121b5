package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestSimEvents: what dies is lost and said so, another warm-up leaves out other requests, and a wrong list is refused.
func TestSimEvents(t *testing.T) {
	row := func(args ...string) map[string]any {
		t.Helper()
		out, _, err := simulate(t, append([]string{"-workload", "W9", "-policy", "weir", "-seeds", "1", "-length", "180s", "-json"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		var row map[string]any
		if err := json.Unmarshal([]byte(out), &row); err != nil {
			t.Fatal(err)
		}
		return row
	}
	calm, late := row(), row("-warm", "170s")
	if _, ok := calm["lost"]; ok || calm["ttft_mean"] == late["ttft_mean"] {
		t.Errorf("nothing died: %v; the last 10 s are as the last 60: %v", calm, late)
	}
	if died := row("-event", "die:1@150s,join:1@160s"); died["lost"] == nil || died["lost"].(float64) < 1 {
		t.Errorf("a replica died: %v", died)
	}
	for event, says := range map[string]string{"die:1": "no time", "die:9@150s": "die of number 9, but there are 4"} {
		if _, _, err := simulate(t, "-workload", "W9", "-seeds", "1", "-event", event); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", event, err)
		}
	}
}
