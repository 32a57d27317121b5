//go:build vllm

package vllm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// truth is what a vLLM's page must come out as when all that was asked is done, as the flags and the answers' usage have it.
func (r *rig) truth(s *server) map[string]float64 {
	w := map[string]float64{"running": 0, "waiting": 0, "kv": 0, "kv_tokens": kvSize}
	for _, a := range r.asked {
		if a.Served != s.addr {
			continue
		}
		w["tokens"] += float64(a.usage.Prompt + a.usage.Output)
		w["hit_tokens"] += float64(a.usage.Details.Cached)
		if a.whole() {
			w["answers"] += float64(a.asked.answers())
			w["answer_tokens"] += float64(a.usage.Output)
		}
	}
	return w
}

// kept is the lines of a page that a recording has: vLLM's families and the process's, without buckets and times of creation.
var kept = regexp.MustCompile(`^(# (HELP|TYPE) )?(vllm:|process_)`)

// record writes a page, and what of it is known from elsewhere, to pkg/scrape/testdata.
func record(t *testing.T, name, page string, known map[string]float64) {
	t.Helper()
	var text strings.Builder
	for line := range strings.Lines(page) {
		family, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), " ")
		family, _, _ = strings.Cut(family, "{")
		if kept.MatchString(line) && !strings.HasSuffix(family, "_bucket") && !strings.HasSuffix(family, "_created") {
			text.WriteString(line)
		}
	}
	base := filepath.Join(root, "pkg", "scrape", "testdata", name)
	told, err := json.MarshalIndent(known, "", "  ")
	if err == nil {
		err = os.WriteFile(base+".txt", []byte(text.String()), 0o644)
	}
	if err == nil {
		err = os.WriteFile(base+".json", append(told, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
