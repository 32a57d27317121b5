package main

import (
	"strings"
	"testing"
)

func TestLogTicks(t *testing.T) {
	labels := func(low, high float64) string {
		var all []string
		for _, tick := range logTicks(low, high) {
			if tick.Label != "" {
				all = append(all, tick.Label)
			}
		}
		return strings.Join(all, " ")
	}
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0.08, 0.6, "0.1 0.2 0.5"},
		{0.3, 30, "0.5 1 2 5 10 20"},
		{0.01, 200, "0.01 0.1 1 10 100"},
	} {
		if got := labels(c.low, c.high); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.low, c.high, got, c.want)
		}
	}
}

// TestChartOfNothing: zeros have no place on a log axis, and a chart without points is still one.
func TestChartOfNothing(t *testing.T) {
	for name, c := range map[string]*chart{
		"empty":  {title: "empty"},
		"none":   {title: "none", log: true},
		"zeros":  {title: "zeros", log: true, curves: []curve{{"a", []float64{1, 2}, []float64{0, 0}}, {"b", []float64{1, 2}, []float64{0, 3}}}},
		"single": {title: "single", log: true, curves: []curve{{"a", []float64{1}, []float64{0.5}}}},
	} {
		text, err := c.svg()
		if err != nil || !strings.Contains(string(text), ">"+name+"</text>") || strings.Contains(string(text), "NaN") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}
