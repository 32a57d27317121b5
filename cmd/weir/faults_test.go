package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestLongHoldIsSaid starts with a max_hold that the filter does not allow, which is an error in the log and no reason
// not to serve, and refuses it where the policy in force has none.
func TestLongHoldIsSaid(t *testing.T) {
	const fault = "error: max_message_timeout is 10m0s: Envoy ignores weir's override of max_hold + 5s = 15m5s, and ends a hold after message_timeout (hold-timeout)"
	s := newSite(t)
	good := s.edited(t)
	write(t, s.file, s.edited(t, "max_hold: 300s", "max_hold: 900s"))
	_, log := s.process(t)
	if got := s.decide(t, "bulk"); got != "bulk" {
		t.Errorf("class %s", got)
	}
	if got := log.String(); !strings.Contains(got, "level=ERROR msg=\"weir check calls this an error, and weir serves all the same\"") || !strings.Contains(got, fault) {
		t.Errorf("the log:\n%s", got)
	}
	rename(t, s.file, good)
	s.reloaded(t, "ok", 1)
	rename(t, s.file, s.edited(t, "max_hold: 300s", "max_hold: 900s"))
	s.reloaded(t, "refused", 1)
	if got := log.String(); strings.Count(got, fault) != 2 {
		t.Errorf("the log:\n%s", got)
	}
}

// TestManyFaultsAreCut has a file with 150 faults log 100, and how many more there are.
func TestManyFaultsAreCut(t *testing.T) {
	s := newSite(t)
	_, log := s.process(t)
	var unknown strings.Builder
	for i := range 150 {
		fmt.Fprintf(&unknown, "      knne%d: 1\n", i)
	}
	rename(t, s.file, s.edited(t, classes+"   # bulk: held back; of all tokens it gets 5 % at least\n", classes+"\n"+unknown.String()))
	s.reloaded(t, "refused", 1)
	if got := log.String(); strings.Count(got, " fault=") != maxFaults || strings.Count(got, "more_faults=50") != 1 {
		t.Errorf("%d lines:\n%s", strings.Count(got, "\n"), got)
	}
}
