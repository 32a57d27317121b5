// Package pkg_test holds the rules that the packages keep between themselves.
package pkg_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/weirproxy/weir/"

// layers lists the packages from the lowest to the highest (DESIGN.md, section 2). A package may import only
// packages of a lower layer, never one of its own.
var layers = [][]string{
	{"proto/weir/v1"},
	{"pkg/chain", "pkg/unpack"},
	{"pkg/prompt", "pkg/prefix", "pkg/knee"},
	{"pkg/pool"},
	{"pkg/classify", "pkg/gate", "pkg/pick"},
	{"pkg/route"},
	{"pkg/extproc", "pkg/admin", "pkg/scrape", "pkg/discover"},
	{"pkg/config"},
	{"pkg/bootstrap"},
	{"pkg/lab/step", "pkg/lab/sample"},
	{"pkg/lab/replica", "pkg/lab/load", "pkg/lab/workload"},
	{"pkg/lab/trace", "pkg/lab/policy"},
	{"pkg/lab/sim"},
	{"envoy"},
	{"cmd/weir", "cmd/weirlab", "envoy/vllm"},
}

// core is the packages that read no clock, start no goroutine and know no backend. pkg/unpack is none of them: it waits for a worker.
var core = []string{"pkg/chain", "pkg/prompt", "pkg/prefix", "pkg/knee", "pkg/pool", "pkg/classify", "pkg/gate", "pkg/pick", "pkg/route", "pkg/lab/step", "pkg/lab/sample", "pkg/lab/workload", "pkg/lab/policy", "pkg/lab/sim"}

// only lists who may import a library, by import path prefix, with the reason in DESIGN.md section 2.
var only = map[string][]string{
	"google.golang.org/grpc":                 {"pkg/extproc"},
	"google.golang.org/protobuf":             {"pkg/extproc", "proto/weir/v1"},
	"github.com/envoyproxy/go-control-plane": {"pkg/extproc"},
	"github.com/prometheus/client_golang":    {"pkg/admin"},
	"github.com/prometheus/common":           {"pkg/scrape"},
	"go.yaml.in/yaml":                        {"pkg/config", "pkg/bootstrap"},
	"github.com/fsnotify/fsnotify":           {"cmd/weir"},
	"github.com/klauspost/compress":          {"pkg/unpack"},
	"github.com/andybalholm/brotli":          {"pkg/unpack"},
	"gonum.org/v1/plot":                      {"cmd/weirlab"},
	"log/slog":                               {"pkg/extproc", "pkg/admin", "pkg/scrape", "pkg/lab/replica", "cmd/weir"},
}

type pkgInfo struct {
	ImportPath string
	Imports    []string
}

func list(t *testing.T) []pkgInfo {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkgInfo
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkgInfo
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, module)
		pkgs = append(pkgs, p)
	}
}

func layerOf(name string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, name) })
}

func under(imp, prefix string) bool { return imp == prefix || strings.HasPrefix(imp, prefix+"/") }

func TestImportsPointDown(t *testing.T) {
	for _, p := range list(t) {
		if p.ImportPath == "pkg" {
			continue // this test's own folder
		}
		mine := layerOf(p.ImportPath)
		if mine < 0 {
			t.Errorf("%s stands in no layer: add it to layers and to DESIGN.md", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			if own, ok := strings.CutPrefix(imp, module); ok && layerOf(own) >= mine {
				t.Errorf("%s (layer %d) imports %s (layer %d): imports point to a lower layer only", p.ImportPath, mine, own, layerOf(own))
			}
			for prefix, who := range only {
				if under(imp, prefix) && !slices.Contains(who, p.ImportPath) {
					t.Errorf("%s imports %s: only %v may", p.ImportPath, imp, who)
				}
			}
		}
	}
}
