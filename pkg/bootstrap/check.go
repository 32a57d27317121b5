package bootstrap

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Severity says what a Finding does to the exit status of weir check.
type Severity string

const (
	// Error is what Envoy or weir refuses, or what makes requests fail or go where weir did not send them.
	Error Severity = "error"
	// Warning is what works until load, a failure or an Envoy of another version comes.
	Warning Severity = "warning"
)

// Finding is one thing that a rule has against the file.
type Finding struct {
	File     string   `json:"file"`
	Line     int      `json:"line"` // from 1; 0: the file as a whole
	Severity Severity `json:"severity"`
	Text     string   `json:"text"`
	Rule     string   `json:"rule"`
}

// String is file:line: severity: text (rule), without the line where there is none.
func (f Finding) String() string {
	at := f.File
	if f.Line > 0 {
		at += ":" + strconv.Itoa(f.Line)
	}
	return fmt.Sprintf("%s: %s: %s (%s)", at, f.Severity, f.Text, f.Rule)
}

// Check returns everything that weir has against the file, in the order of its lines, for an Envoy of the
// version: what Load refuses, and what Rules find. The error is that of reading the file.
//
// A setting that the file lacks counts with Envoy's default. What cannot be read, such as a duration without its
// s, no rule judges: Envoy refuses it. Rules that need the policy run once the policy has no fault of its own.
func Check(name string, envoy Version) ([]Finding, error) {
	text, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return check(name, text, envoy), nil
}

func check(name string, text []byte, envoy Version) []Finding {
	_, refused := parse(name, text)
	all := refusals(name, refused)
	if root, err := tree(name, text); err == nil {
		all = append(all, newMesh(name, root, envoy).judge()...)
	}
	return tidy(all)
}

// refusals are the faults that Load joins, each of which reads file:line: text.
func refusals(name string, err error) (all []Finding) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			all = append(all, refusals(name, one)...)
		}
		return all
	}
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(err.Error(), name+":")
	one := Finding{File: name, Severity: Error, Text: strings.TrimSpace(text), Rule: serve.Name}
	if line, rest, ok := strings.Cut(text, ": "); ok {
		if n, err := strconv.Atoi(line); err == nil {
			one.Line, one.Text = n, rest
		}
	}
	return []Finding{one}
}

// tidy drops what was found twice, as two routes may share what is wrong, and sorts by line, in one line in the
// order of the rules.
func tidy(all []Finding) []Finding {
	type place struct {
		line int
		text string
	}
	seen := map[place]bool{}
	all = slices.DeleteFunc(all, func(f Finding) bool {
		at := place{f.Line, f.Text}
		was := seen[at]
		seen[at] = true
		return was
	})
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return all
}

// judge runs every rule. A key that stood twice where one looked comes last: the value that was judged need not
// be the one that counts.
func (m *mesh) judge() (all []Finding) {
	for _, r := range rules {
		r.find(m, func(at *yaml.Node, format string, args ...any) {
			all = append(all, Finding{m.name, at.Line, r.Severity, fmt.Sprintf(format, args...), r.Name})
		})
	}
	for _, one := range m.faults {
		all = append(all, Finding{m.name, one.line, keyTwice.Severity, one.text, keyTwice.Name})
	}
	return all
}
