package prompt

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// TestChainsAreAsRendered: testdata/rendered.jsonl has bodies and what a real vLLM gives to its chat template for each
// (envoy/vllm/rendered.py, recorded by make test-vllm RECORD=1). Two bodies at one path have one chain where that is the
// same, and other chains where it is not.
func TestChainsAreAsRendered(t *testing.T) {
	f, err := os.Open("testdata/rendered.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type row struct {
		Path, Body string
		Rendered   json.RawMessage
		read       Prompt
	}
	byPath := map[string][]row{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.read = parse(r.Path, r.Body); r.read.Reason != ReasonNone || string(r.Rendered) == "null" {
			t.Errorf("%v, rendered as %s: %s", r.read.Reason, r.Rendered, r.Body)
		}
		byPath[r.Path] = append(byPath[r.Path], r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	alike, other := 0, 0
	for _, rows := range byPath {
		for i, a := range rows {
			for _, b := range rows[i+1:] {
				same := string(a.Rendered) == string(b.Rendered)
				if got := slices.Equal(a.read.Chain, b.read.Chain); got != same {
					t.Errorf("one chain: %v, rendered alike: %v\n%s\n%s\n%.2000s\n%.2000s", got, same, a.Body, b.Body, a.Rendered, b.Rendered)
				}
				if same {
					alike++
				} else {
					other++
				}
			}
		}
	}
	if alike < 100 || other < 1000 {
		t.Errorf("only %d pairs that are rendered alike, and %d that are not", alike, other)
	}
}
