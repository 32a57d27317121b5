//go:build vllm

package vllm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestRendered asks vLLM's own request models and converters what they make of the bodies in pkg/prompt/testdata/rendered.jsonl,
// by which pkg/prompt's chains are held in make test.
func TestRendered(t *testing.T) {
	path := filepath.Join(root, "pkg", "prompt", "testdata", "rendered.jsonl")
	recorded, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	ask := exec.Command(*python, "rendered.py")
	ask.Stdin, ask.Stderr = bytes.NewReader(recorded), &said
	told, err := ask.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.Bytes())
	}
	if *recording {
		if err := os.WriteFile(path, told, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, is := bytes.Split(recorded, []byte("\n")), bytes.Split(told, []byte("\n"))
	if len(was) != len(is) {
		t.Fatalf("%d lines for %d", len(is), len(was))
	}
	for i := range was {
		if !bytes.Equal(was[i], is[i]) {
			t.Errorf("recorded %s\nvLLM     %s", was[i], is[i])
		}
	}
}
