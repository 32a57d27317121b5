package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/pkg/config"
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
func (f Finding) String() string { return f.fault().Error() }

func (f Finding) fault() error {
	return config.Fault{File: f.File, Line: f.Line, Text: fmt.Sprintf("%s: %s (%s)", f.Severity, f.Text, f.Rule)}
}

// Check returns everything that weir has against the files, in the order of their lines, for an Envoy of the
// version: what Load refuses, and what Rules find in the bootstrap file. The error is that of reading the files.
//
// A setting that the file lacks counts with Envoy's default. What cannot be read, such as a duration without its
// s, no rule judges: Envoy refuses it. Rules that need the policy run once the policy has no fault of its own.
func Check(f Files, envoy Version) ([]Finding, error) {
	in, err := f.read()
	if err != nil {
		return nil, err
	}
	return in.check(envoy), nil
}

func (in input) check(envoy Version) (all []Finding) {
	r, refused := in.parse()
	for _, one := range config.Faults(refused) {
		at := config.Fault{File: in.String(), Text: one.Error()}
		errors.As(one, &at)
		all = append(all, Finding{at.File, at.Line, Error, at.Text, serve.Name})
	}
	unseen := true
	if in.Bootstrap != "" {
		if root, err := tree(in.Bootstrap, in.envoy); err == nil {
			m := newMesh(in, root, envoy)
			unseen = len(m.managers) == 0
			all = append(all, m.judge()...)
		}
	}
	if refused == nil {
		all = append(all, r.judge(unseen)...)
	}
	return in.tidy(all)
}

// tidy drops what was found twice, as two routes may share what is wrong, and sorts by file and line, in one line
// in the order of the rules.
func (in input) tidy(all []Finding) []Finding {
	seen := map[Finding]bool{}
	all = slices.DeleteFunc(all, func(f Finding) bool {
		f.Severity, f.Rule = "", ""
		was := seen[f]
		seen[f] = true
		return was
	})
	slices.SortStableFunc(all, func(a, b Finding) int {
		if a.File != b.File && a.File == in.Policy {
			return 1
		}
		if a.File != b.File {
			return -1
		}
		return cmp.Compare(a.Line, b.Line)
	})
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
