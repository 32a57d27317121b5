package config

import "fmt"

// Fault is one thing that is wrong with a file.
type Fault struct {
	File string
	Line int // from 1; 0: the file as a whole
	Text string
}

// Error is file:line: text, without the line where there is none.
func (f Fault) Error() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s", f.File, f.Text)
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
}

// Faults returns every error that err joins, however deep, in order; none for nil.
func Faults(err error) (all []error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			all = append(all, Faults(one)...)
		}
		return all
	}
	if err == nil {
		return nil
	}
	return []error{err}
}
