package prompt

import (
	"strings"
	"testing"
)

// smg-project/smg#2420, llm-d/llm-d-router#1389: a replica's cache is partitioned by cache_salt and by model, an adapter's
// name among them, so one prompt under two of them shares nothing; where the keys stand does not matter.
func TestSaltAndModelPartition(t *testing.T) {
	text := `"prompt":"` + strings.Repeat("the same prompt for all of them. ", 40) + `"`
	parts := []string{
		`{"model":"base",` + text + `}`,
		`{"model":"base",` + text + `,"cache_salt":"a"}`,
		`{"model":"base",` + text + `,"cache_salt":"b"}`,
		`{"model":"adapter",` + text + `}`,
		`{"model":"adapter",` + text + `,"cache_salt":"a"}`,
		`{"model":"basea",` + text + `}`,
	}
	for i, a := range parts {
		for _, b := range parts[i+1:] {
			otherChain(t, completionsPath, a, b)
		}
	}
	for _, same := range []string{
		`{"cache_salt":"a","model":"base",` + text + `}`,
		`{"cache_salt":"b",` + text + `,"model":"base","cache_salt":"a"}`,
		`{` + text + `,"cache_salt":"\u0061","stream":true,"model":"base"}`,
	} {
		sameChain(t, completionsPath, parts[1], same)
	}
}
