package pkg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sources calls look with each non-test source below dir.
func sources(t *testing.T, dir string, look func(set *token.FileSet, f *ast.File)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		n++
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err == nil {
			look(set, f)
		}
		return err
	})
	if err != nil || n == 0 {
		t.Fatalf("%s: %d sources, %v", dir, n, err)
	}
}

// banned reports each use of the names, as time.Now, and each go statement if goroutines are banned too.
func banned(t *testing.T, dir, why string, goroutines bool, names ...string) {
	t.Helper()
	sources(t, dir, func(set *token.FileSet, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				if goroutines {
					t.Errorf("%s: a goroutine: %s", set.Position(n.Pos()), why)
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && slices.Contains(names, x.Name+"."+n.Sel.Name) {
					t.Errorf("%s: %s.%s: %s", set.Position(n.Pos()), x.Name, n.Sel.Name, why)
				}
			}
			return true
		})
	})
}

// TestCoreReadsNoClock keeps the functional core functional: time is an argument there, and what it may not do it cannot
// even name.
func TestCoreReadsNoClock(t *testing.T) {
	for _, dir := range core {
		banned(t, strings.TrimPrefix(dir, "pkg/"), "banned in a core package", true,
			"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc", "time.NewTimer", "time.NewTicker",
			"time.Tick", "context.Background", "context.TODO")
	}
}

// TestNoStrayTimers keeps what nothing can stop out of all packages.
func TestNoStrayTimers(t *testing.T) {
	banned(t, ".", "a timer or context that nobody can stop", false, "time.After", "time.Tick", "context.Background", "context.TODO")
}
