package bootstrap

import "testing"

// TestHeaderMatchers has each kind of header matcher judge the value bulk.
func TestHeaderMatchers(t *testing.T) {
	for text, want := range map[string]bool{
		"{}":                     true, // it is there
		"{invert_match: true}":   false,
		"{present_match: true}":  true,
		"{present_match: false}": false,
		"{present_match: false, invertMatch: true}":           true,
		"{exact_match: bulk}":                                 true,
		"{exact_match: Bulk}":                                 false,
		"{exact_match: Bulk, invert_match: true}":             true,
		"{prefix_match: bu}":                                  true,
		"{suffix_match: bu}":                                  false,
		"{contains_match: ul}":                                true,
		"{safe_regex_match: {regex: 'bul'}}":                  false, // all of it
		"{safe_regex_match: {regex: 'b.*'}}":                  true,
		"{string_match: {exact: bulk}}":                       true,
		"{string_match: {exact: other}}":                      false,
		"{stringMatch: {exact: BULK}}":                        false,
		"{stringMatch: {exact: BULK, ignoreCase: 1}}":         false, // no bool
		"{string_match: {prefix: BU, ignore_case: true}}":     true,
		"{string_match: {suffix: k}}":                         true,
		"{string_match: {contains: x}, invert_match: true}":   true,
		"{string_match: {safe_regex: {regex: 'bulk|batch'}}}": true,
		"{string_match: {safe_regex: {regex: '('}}}":          false,
		"{string_match: {custom: {}}}":                        true, // not understood
		"{string_match: {custom: {}}, invert_match: true}":    true,
		"{range_match: {start: 1, end: 2}}":                   true,
	} {
		h, err := tree("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := (&file{}).takes(h, "bulk"); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
