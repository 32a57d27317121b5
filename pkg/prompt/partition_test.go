package prompt

import (
	"slices"
	"strings"
	"testing"
)

// smg-project/smg#2420, llm-d/llm-d-router#1389: a replica's cache is partitioned by cache_salt and by model, an adapter's
// name among them, so one prompt under two of them shares no block; where the keys stand does not matter.
func TestSaltAndModelPartition(t *testing.T) {
	words := strings.Repeat("the same prompt for all of them. ", 40)
	for path, text := range map[string]string{
		completionsPath: `"prompt":"` + words + `"`,
		chatPath:        `"messages":[{"role":"system","content":"` + words + `"},{"role":"user","content":"?"}]`,

		paths[APIResponses]:  `"input":"` + words + `"`,
		paths[APIMessages]:   `"system":"` + words + `","messages":[]`,
		paths[APIEmbeddings]: `"input":"` + words + `"`,
	} {
		parts := []string{
			`{"model":"base",` + text + `}`,
			`{"model":"base",` + text + `,"cache_salt":"a"}`,
			`{"model":"base",` + text + `,"cache_salt":"b"}`,
			`{"model":"adapter",` + text + `}`,
			`{"model":"adapter",` + text + `,"cache_salt":"a"}`,
			`{"model":"basea",` + text + `}`,
			`{"model":"ba",` + text + `,"cache_salt":"se"}`,
			`{"model":"bas",` + text + `,"cache_salt":"ea"}`,
		}
		for i, a := range parts {
			for _, b := range parts[i+1:] {
				shareNothing(t, path, a, b)
			}
		}
		for _, same := range []string{
			`{"cache_salt":"a","model":"base",` + text + `}`,
			`{"cache_salt":"b",` + text + `,"model":"base","cache_salt":"a"}`,
			`{` + text + `,"cache_salt":"\u0061","stream":true,"model":"base"}`,
		} {
			sameChain(t, path, parts[1], same)
		}
	}
}

// shareNothing fails if two bodies have a block in common.
func shareNothing(t *testing.T, path, a, b string) {
	t.Helper()
	pa, pb := parse(path, a), parse(path, b)
	if pa.Reason != ReasonNone || pb.Reason != ReasonNone || len(pa.Chain) < 5 {
		t.Fatalf("not read: %v, %v, %d blocks of %q, %q", pa.Reason, pb.Reason, len(pa.Chain), a, b)
	}
	for _, h := range pa.Chain {
		if slices.Contains(pb.Chain, h) {
			t.Errorf("block %x is in both %q and %q", h, a, b)
		}
	}
}
