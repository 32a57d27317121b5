package pkg_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scanGo reports each line of a package's non-test sources that names one of the banned calls.
func scanGo(t *testing.T, name, dir string, banned []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Errorf("%s: no sources in %s", name, dir)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		sc := bufio.NewScanner(f)
		for n := 1; sc.Scan(); n++ {
			code, _, _ := strings.Cut(sc.Text(), "//")
			for _, b := range banned {
				if strings.Contains(code, b) {
					t.Errorf("%s:%d: %s is banned in a core package", file, n, b)
				}
			}
		}
		f.Close()
	}
}
