package bootstrap

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// stringMatches are the plain ways of Envoy's StringMatcher.
var stringMatches = []struct {
	key string
	is  func(text, part string) bool
}{
	{"exact", func(text, part string) bool { return text == part }},
	{"prefix", strings.HasPrefix}, {"suffix", strings.HasSuffix}, {"contains", strings.Contains},
}

// match reports whether a matcher takes a text. suffix ends its keys: nothing in a StringMatcher, _match in a header
// matcher of the old form. known is false for a matcher that has none of them, such as one of an extension.
func (f *file) match(n *yaml.Node, suffix, text string) (takes, known bool) {
	for _, one := range stringMatches {
		part := f.get(n, one.key+suffix)
		switch {
		case part == nil:
		case f.flag(n, "ignore_case"):
			return one.is(strings.ToLower(text), strings.ToLower(part.Value)), true
		default:
			return one.is(text, part.Value), true
		}
	}
	if regex := f.find(n, "safe_regex"+suffix, "regex"); regex != nil {
		return whole(regex.Value, text), true
	}
	return false, false
}

// whole reports whether a regular expression matches all of a text, as Envoy's do. One that is none matches nothing.
func whole(regex, text string) bool {
	re, err := regexp.Compile("^(?:" + regex + ")$")
	return err == nil && re.MatchString(text)
}

// takes reports whether a header matcher takes a request whose header has the value. What is not understood does.
func (f *file) takes(h *yaml.Node, value string) bool {
	takes, known := true, true
	switch present := f.get(h, "present_match"); {
	case f.get(h, "string_match") != nil:
		takes, known = f.match(f.get(h, "string_match"), "", value)
	case f.get(h, "range_match") != nil:
		known = false
	case present != nil:
		takes = strings.EqualFold(present.Value, "true")
	default: // without any of them the header must be there
		if t, old := f.match(h, "_match", value); old {
			takes = t
		}
	}
	return !known || takes != f.flag(h, "invert_match")
}

// needs reports whether a header matcher takes only requests that have the header.
func (f *file) needs(h *yaml.Node) bool {
	switch present := f.get(h, "present_match"); {
	case f.flag(h, "invert_match"):
		return false
	case present != nil:
		return strings.EqualFold(present.Value, "true")
	case f.flag(h, "treat_missing_header_as_empty"):
		return !f.takes(h, "")
	}
	return true
}

// reads are the headers that weir reads of every request and answer: the API, the class, the deadline, the status.
var reads = []string{":path", classHeader, "x-weir-deadline", ":status"}

// forwardRules looks for headers that the filter keeps from weir. A route cannot override that.
func forwardRules(m *mesh, say say) {
	names := slices.Clone(reads)
	if m.policy != nil {
		if name, ok := strings.CutPrefix(strings.ToLower(m.policy.Edge.Flow), "header:"); ok {
			names = append(names, name)
		}
		if name := m.policy.Route.Pick.AffinityHeader(); name != "" {
			names = append(names, name)
		}
	}
	for _, g := range m.managers {
		at := m.get(g.filter, "forward_rules")
		kept := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return m.forwards(at, name) })
		if len(kept) > 0 {
			say(at, "forward_rules keep %s from weir, which reads the API, the class, the deadline, the status and what the policy names there", strings.Join(kept, ", "))
		}
	}
}

// forwards reports whether Envoy sends weir a header: one that is allowed, if any are named, and not disallowed.
func (m *mesh) forwards(rules *yaml.Node, name string) bool {
	in := func(key string) (given, listed bool) {
		patterns := m.list(rules, key, "patterns")
		return len(patterns) > 0, slices.ContainsFunc(patterns, func(p *yaml.Node) bool {
			takes, known := m.match(p, "", name)
			return takes || !known
		})
	}
	allow, allowed := in("allowed_headers")
	_, disallowed := in("disallowed_headers")
	return (!allow || allowed) && !disallowed
}

// mutationRules looks for headers that the filter does not let weir set.
func mutationRules(m *mesh, say say) {
	for _, g := range m.managers {
		at := m.get(g.filter, "mutation_rules")
		var lost []string
		for _, name := range []string{pickHeader, "retry-after"} {
			if !m.mutable(at, name) {
				lost = append(lost, name)
			}
		}
		if len(lost) > 0 {
			say(at, "mutation_rules do not let weir set %s: its pick is no header, and a refusal does not say when to come back", strings.Join(lost, ", "))
		}
	}
}

// mutable reports whether Envoy lets weir set a header that is none of its own and none of routing. Of the rules the
// expressions count first, and of these the one that disallows.
func (m *mesh) mutable(rules *yaml.Node, name string) bool {
	if not := m.find(rules, "disallow_expression", "regex"); not != nil && whole(not.Value, name) {
		return false
	}
	if allow := m.find(rules, "allow_expression", "regex"); allow != nil && whole(allow.Value, name) {
		return true
	}
	return !m.flag(rules, "disallow_all")
}

// below400 are the names of the statuses that are no error.
var below400 = []string{"Continue",
	"OK", "Created", "Accepted", "NonAuthoritativeInformation", "NoContent", "ResetContent", "PartialContent", "MultiStatus", "AlreadyReported", "IMUsed",
	"MultipleChoices", "MovedPermanently", "Found", "SeeOther", "NotModified", "UseProxy", "TemporaryRedirect", "PermanentRedirect"}

func statusOnError(m *mesh, say say) {
	for _, g := range m.managers {
		code := m.find(g.filter, "status_on_error", "code")
		if n, at := m.number(g.filter, "status_on_error", "code"); at != nil && n < 400 || code != nil && slices.Contains(below400, code.Value) {
			say(code, "status_on_error is %s: Envoy takes no status below 400, and answers 500 in its place; use ServiceUnavailable", code.Value)
		}
	}
}
