package trace

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirproxy/weir/pkg/lab/workload"
)

// Limits of what is taken for a request.
const (
	MaxTokens = 10_000_000 // of a prompt and of an answer: ten times the longest contexts on offer
	MaxLine   = 1 << 20    // bytes
	maxTime   = 10 * 365 * 24 * time.Hour
)

// ErrEmpty is a trace without a request.
var ErrEmpty = errors.New("no request in it")

// Open reads the whole trace and checks it. Times are divided by speed, which is above 0, and count from
// the first row. seed places the rows of a Mooncake trace inside their steps. The format is told by the
// first line.
func Open(path string, speed float64, seed uint64) (workload.Source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	return Read(filepath.Base(path), f, speed, seed)
}

// Read is Open for what is already open; name stands in errors.
func Read(name string, r io.Reader, speed float64, seed uint64) (workload.Source, error) {
	if !(speed > 0 && speed <= math.MaxFloat64) {
		return nil, fmt.Errorf("trace: a speed of %v is not above 0", speed)
	}
	l := newLines(name, r)
	rows, err := read(l, seed)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("trace: %s: %w", name, ErrEmpty)
	}
	if at := rows[len(rows)-1].at - rows[0].at; at.Seconds()/speed > maxTime.Seconds() {
		return nil, fmt.Errorf("trace: %s: at a speed of %v it takes more than ten years", name, speed)
	}
	return &replay{rows: rows, first: rows[0].at, speed: speed}, nil
}

// read finds out the format and reads the rows in it.
func read(l *lines, seed uint64) ([]row, error) {
	first, ok := l.next()
	switch {
	case !ok:
		return nil, l.err
	case first == azureHeader:
		return l.rows(azureRow)
	case strings.Contains(first, `"hash_ids"`):
		l.again()
		rows, err := l.rows(mooncakeRow)
		jitter(rows, seed)
		return rows, err
	case strings.HasPrefix(strings.TrimSpace(first), "{"):
		l.again()
		return l.rows(ownRow)
	}
	return nil, l.fault("neither Azure's header, %s, nor a JSON object", azureHeader)
}
