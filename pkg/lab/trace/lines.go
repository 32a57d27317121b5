package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"
)

// row is a request as a trace has it.
type row struct {
	at             time.Duration
	prompt, output int
	class, flow    string
	ids            []uint64 // of the prompt's blocks, then of the answer's
	block          int      // tokens that an id covers; 0: a prompt that shares nothing
	named          int      // tokens that the ids cover together, the last one perhaps in part
}

// lines reads a text line by line and knows where it is.
type lines struct {
	name  string
	scan  *bufio.Scanner
	line  int
	held  bool // next returns the same line again
	blank int  // the line number of an empty line, 0 without one
	err   error
}

func newLines(name string, r io.Reader) *lines {
	l := &lines{name: name, scan: bufio.NewScanner(r)}
	l.scan.Buffer(nil, MaxLine)
	return l
}

// next returns the next line; ok is false at the end and when err is set.
func (l *lines) next() (line string, ok bool) {
	if l.held {
		l.held = false
		return l.scan.Text(), true
	}
	for l.err == nil && l.scan.Scan() {
		l.line++
		if l.blank > 0 {
			l.line = l.blank
			l.err = l.fault("an empty line before the end")
			return "", false
		}
		if text := l.scan.Text(); text != "" {
			return text, true
		}
		l.blank = l.line
	}
	if err := l.scan.Err(); err != nil && l.err == nil {
		l.line++
		if l.err = l.fault("%w", err); errors.Is(err, bufio.ErrTooLong) {
			l.err = l.fault("longer than %d bytes", MaxLine)
		}
	}
	return "", false
}

// again makes next return the present line once more.
func (l *lines) again() { l.held = true }

// fault is an error at the present line.
func (l *lines) fault(format string, args ...any) error {
	return fmt.Errorf("trace: %s:%d: %w", l.name, l.line, fmt.Errorf(format, args...))
}

// rows parses each line that is left.
func (l *lines) rows(parse func(line string) (row, error)) ([]row, error) {
	var all []row
	for line, ok := l.next(); ok; line, ok = l.next() {
		r, err := parse(line)
		if err == nil {
			err = r.check(all)
		}
		if err != nil {
			return nil, l.fault("%w", err)
		}
		all = append(all, r)
	}
	return all, l.err
}

// check is what holds for every format.
func (r *row) check(before []row) error {
	switch {
	case r.prompt < 1 || r.prompt > MaxTokens:
		return fmt.Errorf("a prompt of %d tokens is not between 1 and %d", r.prompt, MaxTokens)
	case r.output < 1 || r.output > MaxTokens:
		return fmt.Errorf("an answer of %d tokens is not between 1 and %d", r.output, MaxTokens)
	case r.at < 0 || r.at > maxTime:
		return fmt.Errorf("a time of %v is not between 0 and ten years", r.at)
	case len(before) > 0 && r.at < before[len(before)-1].at:
		return fmt.Errorf("time goes back by %v", before[len(before)-1].at-r.at)
	}
	return nil
}
