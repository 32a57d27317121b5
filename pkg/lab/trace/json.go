package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// decode fills v from the one object in the line, without unknown fields.
func decode(line string, v any) error {
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("not a row: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("not a row: more than one JSON value")
	}
	return once(line)
}

// once reports a name that an object has twice: encoding/json would drop the first of them, and takes
// names without regard to case. The line is known to be one flat object.
func once(line string) error {
	seen, depth, name := map[string]bool{}, 0, true
	for d := json.NewDecoder(strings.NewReader(line)); ; {
		token, err := d.Token()
		if err != nil {
			return nil // the end
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if s, ok := token.(string); ok && depth == 1 && name {
			if s = strings.ToLower(s); seen[s] {
				return fmt.Errorf("not a row: %s stands in it twice", s)
			}
			seen[s], name = true, false
		} else if depth == 1 && token != json.Delim('{') {
			name = true
		}
	}
}

// field is a number of a row.
type field struct {
	name  string
	value *int64 // nil: missing
}

// given reports the first number that is missing or negative.
func given(fields ...field) error {
	for _, f := range fields {
		if f.value == nil {
			return fmt.Errorf("%s is missing", f.name)
		}
		if *f.value < 0 {
			return fmt.Errorf("%s is %d, below 0", f.name, *f.value)
		}
	}
	return nil
}

// tokens is a count of tokens as an int; what is too large stays too large for row.check.
func tokens(n int64) int { return int(min(n, MaxTokens+1)) }
