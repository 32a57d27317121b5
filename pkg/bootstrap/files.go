package bootstrap

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weirproxy/weir/pkg/config"
)

// Files are the files that weir is told of: Envoy's bootstrap, a weir.yaml with the policy by itself, or both.
// Empty: not given.
type Files struct {
	Bootstrap, Policy string
}

// String names them.
func (f Files) String() string {
	if f.Bootstrap == "" || f.Policy == "" {
		return f.Bootstrap + f.Policy
	}
	return f.Bootstrap + ", " + f.Policy
}

// input is the files with their texts.
type input struct {
	Files
	envoy, policy []byte
}

func (f Files) read() (in input, err error) {
	in.Files = f
	var errs [2]error
	if f.Bootstrap != "" {
		in.envoy, errs[0] = readFile(f.Bootstrap)
	}
	if f.Policy != "" {
		in.policy, errs[1] = readFile(f.Policy)
	}
	return in, errors.Join(errs[:]...)
}

// maxFile is the most of a file that is read, in bytes. A bootstrap of a thousand clusters is under 1 MiB.
const maxFile = 16 << 20

// readFile reads a regular file: a pipe would keep weir waiting for its other end.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: more than %d MiB, which no policy or bootstrap file is", name, maxFile>>20)
	}
	return text, err
}

// reading is a Bootstrap, and where in the files its parts stand.
type reading struct {
	Bootstrap
	policy part
	listen place
	all    place            // the pools as a whole
	pools  map[string]place // each by its name
}

// place is a line of a file; 0: the file as a whole.
type place struct {
	file string
	line int
}

// String is file:line.
func (p place) String() string {
	if p.line == 0 {
		return p.file
	}
	return fmt.Sprintf("%s:%d", p.file, p.line)
}

func (p place) fault(text string) error { return config.Fault{File: p.file, Line: p.line, Text: text} }
